package org.seraphim.spark.ml

import java.io.IOException

import org.apache.spark.SparkException

import org.seraphim.spark.BundledProgram

/** A training or a prediction that has failed, with the reason as the program has printed it. */
final class ProgramFailure(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

private[ml] object ProgramFailure {
  /** Lines of the program that are kept for the error. */
  val MaxLines = 20

  private val Error = "error: "
  /** The status of a process that signal 9 has ended. */
  private val Killed = 128 + 9
  /** The status of a shell for a program that it cannot run or find. */
  private val CannotStart = Set(126, 127)

  /** What Java says about a class, or about a function in one, that it does not find. */
  private val MissingClass =
    "(ClassNotFoundException|NoClassDefFoundError): org[./]seraphim|cannot assign instance of .*SerializedLambda".r
  private val MissingJars = "the executors do not have the jars of Seraphim, which spark-submit takes as --jars"

  /** The error that the program has printed, which begins with `error:`. */
  def ofProgram(lines: Seq[String], status: Int): ProgramFailure = {
    val start = lines.lastIndexWhere(_.startsWith(Error))
    val text = if (start >= 0) lines.drop(start).mkString("\n").stripPrefix(Error) else lines.mkString("\n")
    val reason =
      if (status == Killed) {
        "the program seraphim was killed (signal 9), most likely because this machine or container has too little memory: " +
          "give it more, or use more executors (numWorkers)"
      } else if (text.isEmpty) s"the program seraphim has ended with status $status" else text
    new ProgramFailure(if (CannotStart.contains(status)) s"$reason; ${BundledProgram.advice}" else reason)
  }

  /** The program cannot be started on this machine. */
  def ofStart(fault: IOException): ProgramFailure =
    new ProgramFailure(s"${fault.getMessage}; ${BundledProgram.advice}", fault)

  /** Spark has only the text of an exception of a task: finds the reason in it. */
  def ofTask(fault: SparkException, texts: ProgramTexts): ProgramFailure = {
    val lines = fault.getMessage.split('\n').toSeq
    val isReason = Seq(classOf[ProgramFailure].getName, classOf[IllegalArgumentException].getName).map(_ + ": ")
    val found = lines.zipWithIndex.collectFirst {
      case (line, i) if isReason.exists(name => line.contains(name)) =>
        val name = isReason.find(name => line.contains(name)).get
        val first = line.substring(line.indexOf(name) + name.length)
        (first +: lines.drop(i + 1).takeWhile(line => !line.startsWith("\tat "))).mkString("\n")
    }
    val reason = found.getOrElse {
      if (MissingClass.findFirstIn(fault.getMessage).isEmpty) fault.getMessage
      else s"$MissingJars: ${lines.head}"
    }
    new ProgramFailure(texts.forSpark(reason), fault)
  }
}
