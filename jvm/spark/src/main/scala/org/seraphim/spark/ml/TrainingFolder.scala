package org.seraphim.spark.ml

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.seraphim.spark.LocalFolder

/** What the records of a training are, or those of one worker. */
private[ml] final case class RecordTotals(records: Long, validation: Long, weight: Double, vectorSizes: Set[Int]) {
  def +(other: RecordTotals): RecordTotals = RecordTotals(records + other.records, validation + other.validation,
    weight + other.weight, vectorSizes ++ other.vectorSizes)

  /** Returns the reason why nothing can be trained on these records. */
  def fault(plan: TrainingPlan): Option[String] =
    if (records == 0) Some("the data have no records to train on")
    else if (vectorSizes.size > 1) {
      Some(RecordEncoder.differentSizes(plan.features.head, vectorSizes.min, vectorSizes.max).getMessage)
    } else if (records < plan.workers) {
      Some(s"numWorkers is ${plan.workers}, and there are only $records records; each worker needs at least one")
    } else None

  /** For other machines. */
  def text: String = (Seq(records.toString, validation.toString, weight.toString) ++ vectorSizes).mkString(" ")
}

private[ml] object RecordTotals {
  def parse(text: String): RecordTotals = {
    val words = text.split(' ')
    RecordTotals(words(0).toLong, words(1).toLong, words(2).toDouble, words.drop(3).map(_.toInt).toSet)
  }
}

/** The files of a training on the machine of a task: its records, and the model that comes of them. */
private[ml] final class TrainingFolder extends AutoCloseable {
  val path: Path = LocalFolder.create("seraphim-fit")
  private val rows = Files.createDirectory(path.resolve(TrainingFolder.Rows))
  private val validation = Files.createDirectory(path.resolve(TrainingFolder.Validation))

  /** Writes the blocks as files whose order is that of the partitions, in whatever order they come. */
  def write(blocks: Iterator[(BlockKey, RecordBlock)]): RecordTotals = {
    val counts = mutable.Map(false -> 0L, true -> 0L)
    val weights = mutable.Map[(Int, Int), Double]()
    var sizes = Set[Int]()
    blocks.foreach { case (key, block) =>
      val name = f"part-${key.partition}%05d-${key.number}%05d.arrow"
      Files.write((if (block.isValidation) validation else rows).resolve(name), block.file)
      counts(block.isValidation) += block.records
      if (!block.isValidation) weights((key.partition, key.number)) = block.weight
      if (block.vectorSize >= 0) sizes += block.vectorSize
    }
    // The order of a sum of weights is that of the partitions, too.
    RecordTotals(counts(false), counts(true), weights.toSeq.sortBy(_._1).map(_._2).sum, sizes)
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
  val Rows = "rows"
  val Validation = "validation"
  val Model = "model"
}
