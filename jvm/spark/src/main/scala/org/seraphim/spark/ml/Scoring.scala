package org.seraphim.spark.ml

import java.io.{BufferedOutputStream, BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.LinkedBlockingQueue

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.Row

import org.seraphim.spark.{BundledProgram, LocalFolder}

/** Scores the rows of a partition with the program, which reads them from a pipe and answers on another. */
private[ml] final class Scoring(
    binary: Option[String],
    archive: () => Array[Byte],
    digest: String,
    schema: RecordSchema,
    vectorSize: Option[Int],
    output: OutputColumns)
    extends Serializable {

  /** Appends raw prediction, probability and prediction to each row, as far as the output has them. */
  def apply(rows: Iterator[Row]): Iterator[Row] =
    if (rows.isEmpty) Iterator.empty
    else {
      val model = UnpackedModels.acquire(digest, archive())
      TaskContext.get().addTaskCompletionListener[Unit](_ => UnpackedModels.release(digest))
      val scored = start(rows, model)
      // Listeners run in reverse order, so the process ends before its model is released.
      TaskContext.get().addTaskCompletionListener[Unit](_ => scored.close())
      scored.map { case (row, line) => Row.fromSeq(row.toSeq ++ output.values(scores(line))) }
    }

  /** The raw scores of one row, outside of a task. */
  def scoresOf(row: Row): Array[Double] = {
    val model = UnpackedModels.acquire(digest, archive())
    try {
      val scored = start(Iterator(row), model)
      try scores(scored.toSeq.head._2) finally scored.close()
    } finally UnpackedModels.release(digest)
  }

  private def start(rows: Iterator[Row], model: Path): ScoredRows = {
    val command = Seq(BundledProgram.find(binary), "predict", "--model", model.toString, "--data", "-", "--format",
      "arrow", "--no-label", "--raw-scores", "--output", "-", "--quiet")
    new ScoredRows(rows, new RecordEncoder(schema, vectorSize), command)
  }

  private def scores(line: String): Array[Double] = {
    val fields = line.split(',')
    val numbers = output.kind match {
      // The name of the predicted class comes first, and may be any text.
      case ClassesOutput(classes) => fields.takeRight(classes.size)
      // Other numbers, such as the distance of a cluster, follow the prediction.
      case _: TwoClassOutput | _: ValueOutput => fields.take(1)
    }
    numbers.map(_.toDouble)
  }
}

/**
 * Rows with what the program prints for them. Rows are written while no answer is there. Another thread reads the
 * answers, so that the program never waits for this one.
 */
private final class ScoredRows(rows: Iterator[Row], encoder: RecordEncoder, command: Seq[String])
    extends Iterator[(Row, String)] with AutoCloseable {
  import ScoredRows._

  private val errors = LocalFolder.removedAtEnd(Files.createTempFile("seraphim-predict", ".txt"))
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
