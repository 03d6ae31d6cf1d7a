package org.seraphim.spark.ml

import org.apache.spark.SparkException

/** A training that has failed, with the reason as the program has printed it. */
final class TrainingFailure(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

private[ml] object TrainingFailure {
  /** Lines of the program that are kept for the error. */
  val MaxLines = 20

  private val Error = "error: "

  /** The error that the program has printed, which begins with `error:`. */
  def ofProgram(lines: Seq[String], status: Int): TrainingFailure = {
    val start = lines.lastIndexWhere(_.startsWith(Error))
    val text = if (start >= 0) lines.drop(start).mkString("\n").stripPrefix(Error) else lines.mkString("\n")
    new TrainingFailure(if (text.isEmpty) s"the program seraphim has ended with status $status" else text)
  }

  /** Spark has only the text of an exception of a task: finds the reason in it. */
  def ofTask(fault: SparkException): TrainingFailure = {
    val lines = fault.getMessage.split('\n').toSeq
    val isReason = Seq(classOf[TrainingFailure].getName, classOf[IllegalArgumentException].getName).map(_ + ": ")
    val found = lines.zipWithIndex.collectFirst {
      case (line, i) if isReason.exists(name => line.contains(name)) =>
        val name = isReason.find(name => line.contains(name)).get
        val first = line.substring(line.indexOf(name) + name.length)
        (first +: lines.drop(i + 1).takeWhile(line => !line.startsWith("\tat "))).mkString("\n")
    }
    new TrainingFailure(found.getOrElse(fault.getMessage), fault)
  }
}
