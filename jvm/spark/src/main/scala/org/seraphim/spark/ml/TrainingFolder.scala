package org.seraphim.spark.ml

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.seraphim.spark.LocalFolder

/** The files of a training on the machine of a task: its records, and the model that comes of them. */
private[ml] final class TrainingFolder extends AutoCloseable {
  val path: Path = LocalFolder.create(TrainingFolder.Prefix)
  private val rows = Files.createDirectory(path.resolve(TrainingFolder.Rows))
  private val validation = Files.createDirectory(path.resolve(TrainingFolder.Validation))

  /** Writes the blocks as files whose order is that of the partitions, in whatever order they come. */
  def write(blocks: Iterator[(BlockKey, RecordBlock)]): RecordTotals = {
    val parts = mutable.Map[(Int, Int), RecordTotals]()
    blocks.foreach { case (key, block) =>
      val name = f"part-${key.partition}%05d-${key.number}%05d.arrow"
      Files.write((if (block.totals.validation > 0) validation else rows).resolve(name), block.file)
      parts((key.partition, key.number)) = block.totals
    }
    // The order of sums is that of the partitions, too.
    parts.toSeq.sortBy(_._1).map(_._2).foldLeft(RecordTotals.none)(_ + _)
  }

  /** Writes a file without records for a worker that has none to validate on, when others have some. */
  def writeNoValidation(schema: RecordSchema): Unit = {
    val encoder = new RecordEncoder(schema)
    try Files.write(validation.resolve("none.arrow"), encoder.toFile()) finally encoder.close()
  }

  def report: Path = path.resolve("report.json")

  /** The model directory, if the model was saved on this machine. */
  def model: Option[Array[Byte]] = {
    val model = path.resolve(TrainingFolder.Model)
    if (Files.isDirectory(model)) Some(DirectoryArchive.pack(model)) else None
  }

  override def close(): Unit = DirectoryArchive.remove(path)
}

private[ml] object TrainingFolder {
  val Prefix = "seraphim-fit"
  val Rows = "rows"
  val Validation = "validation"
  val Model = "model"
}
