package org.seraphim.spark.ml

import java.io.{BufferedOutputStream, BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.LinkedBlockingQueue

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.Row

import org.seraphim.spark.BundledProgram

/** What the numbers of a prediction mean. */
private[ml] sealed trait OutputKind
/** The probability of label 1. */
private[ml] case object ProbabilityOutput extends OutputKind
/** A distance to the boundary between two classes. */
private[ml] case object MarginOutput extends OutputKind
/** The predicted class, then the probabilities of these classes. */
private[ml] final case class ClassesOutput(classes: Seq[Double]) extends OutputKind
/** The first number is the prediction. */
private[ml] case object ValueOutput extends OutputKind

/** Scores the rows of a partition with the program, which reads them from a pipe and answers on another. */
private[ml] final class Scoring(
    binary: Option[String],
    archive: Broadcast[Array[Byte]],
    digest: String,
    schema: RecordSchema,
    vectorSize: Option[Int],
    output: OutputKind,
    threshold: Double)
    extends Serializable {

  /** Appends raw prediction, probability and prediction to each row, as far as the output has them. */
  def apply(rows: Iterator[Row]): Iterator[Row] = if (rows.isEmpty) Iterator.empty else start(rows)

  private def start(rows: Iterator[Row]): Iterator[Row] = {
    val model = UnpackedModels.acquire(digest, archive.value)
    TaskContext.get().addTaskCompletionListener[Unit](_ => UnpackedModels.release(digest))
    val command = Seq(BundledProgram.find(binary), "predict", "--model", model.toString, "--data", "-", "--format",
      "arrow", "--no-label", "--output", "-", "--quiet")
    val scored = new ScoredRows(rows, new RecordEncoder(schema, vectorSize), command)
    // Listeners run in reverse order, so the process ends before its model is released.
    TaskContext.get().addTaskCompletionListener[Unit](_ => scored.close())
    scored.map { case (row, line) => append(row, line) }
  }

  private def append(row: Row, line: String): Row = {
    val fields = line.split(',')
    val added: Seq[Any] = output match {
      case ProbabilityOutput =>
        val p = fields(0).toDouble
        val margin = math.log(p) - math.log1p(-p)
        Seq(Vectors.dense(-margin, margin), Vectors.dense(1 - p, p), if (p > threshold) 1.0 else 0.0)
      case MarginOutput =>
        val margin = fields(0).toDouble
        Seq(Vectors.dense(-margin, margin), if (margin > 0) 1.0 else 0.0)
      case ClassesOutput(classes) =>
        // The name of the predicted class comes first, and may be any text.
        val probabilities = fields.takeRight(classes.size).map(_.toDouble)
        Seq(Vectors.dense(probabilities), classes(probabilities.indexOf(probabilities.max)))
      case ValueOutput => Seq(fields(0).toDouble)
    }
    Row.fromSeq(row.toSeq ++ added)
  }
}

/**
 * Rows with what the program prints for them. Rows are written while no answer is there. Another thread reads the
 * answers, so that the program never waits for this one.
 */
private final class ScoredRows(rows: Iterator[Row], encoder: RecordEncoder, command: Seq[String])
    extends Iterator[(Row, String)] with AutoCloseable {
  import ScoredRows._

  private val errors = Files.createTempFile("seraphim-predict", ".txt")
  private val process = try new ProcessBuilder(command: _*).redirectError(errors.toFile).start()
  catch {
    case fault: IOException =>
      encoder.close()
      Files.deleteIfExists(errors)
      throw ProgramFailure.ofStart(fault)
  }
  private val lines = new LinkedBlockingQueue[String]()
  private val waiting = mutable.Queue[Row]()
  private val out = new BufferedOutputStream(process.getOutputStream, BufferBytes)
  private val stream = encoder.stream(out)
  private var hasHeader = false
  private var isWritten = false
  private var isEnded = false
  private var pending: Option[String] = None
  private val reader = new Thread(() => readLines(), "seraphim scores")
  reader.setDaemon(true)
  reader.start()

  private def readLines(): Unit = {
    val in = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
    // The stream ends with the process, perhaps with an IOException.
    scala.util.Try(Iterator.continually(in.readLine()).takeWhile(_ != null).foreach(lines.put))
    lines.put(End)
  }

  override def hasNext: Boolean = {
    while (pending.isEmpty && !isEnded) {
      val line = if (isWritten) lines.take() else lines.poll()
      if (line == null) writeBatch()
      else if (line == End) {
        isEnded = true
        finish()
      } else if (hasHeader) pending = Some(line)
      else hasHeader = true
    }
    pending.isDefined
  }

  override def next(): (Row, String) = {
    if (!hasNext) throw new NoSuchElementException("all rows are scored")
    val line = pending.get
    pending = None
    (waiting.dequeue(), line)
  }

  private def writeBatch(): Unit = {
    while (rows.hasNext && encoder.records < BatchRecords) {
      val row = rows.next()
      encoder.add(row)
      waiting.enqueue(row)
    }
    isWritten = !rows.hasNext
    try {
      stream.writeBatch()
      if (isWritten) stream.end() else out.flush()
    } catch {
      // The program has ended early; its status and its text say why.
      case _: IOException => isWritten = true
    }
  }

  private def finish(): Unit = {
    val status = process.waitFor()
    val text = new String(Files.readAllBytes(errors), UTF_8)
    if (status != 0) throw ProgramFailure.ofProgram(text.split('\n').toSeq, status)
    if (waiting.nonEmpty) throw new ProgramFailure(s"the program has left out the scores of ${waiting.size} rows")
  }

  override def close(): Unit = {
    process.destroyForcibly()
    encoder.close()
    Files.deleteIfExists(errors)
  }
}

private object ScoredRows {
  private val End = "\u0000"
  private val BatchRecords = 1000
  private val BufferBytes = 1 << 16
}
