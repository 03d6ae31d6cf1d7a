package org.seraphim.spark.ml

import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row

import org.seraphim.spark.{BundledProgram, ChildProcess}

/** Some records of a partition as an Arrow file. */
private[ml] final case class RecordBlock(
    isValidation: Boolean,
    records: Int,
    weight: Double,
    vectorSize: Int,
    file: Array[Byte])

/** What a training has given: the model directory, the report of the program, and the size of the vectors, if any. */
private[ml] final case class Trained(archive: Array[Byte], report: String, vectorSize: Option[Int])

/** A training of the program: which algorithm, which columns, which settings. */
private[ml] final case class TrainingPlan(
    binary: Option[String],
    algorithm: String,
    schema: RecordSchema,
    features: Seq[String],
    label: Option[String],
    weight: Option[String],
    seed: Long,
    tasks: Option[Int],
    threads: Int,
    settings: SettingsRule)

/** The parameters of the algorithm. Some of them depend on the sum of the weights of the records. */
private[ml] final case class SettingsRule(ofUser: Seq[String], regParam: Option[Double], elasticNet: Double) {

  /** Spark adds the penalty to the mean of the losses, the program to their sum. */
  def words(weightSum: Double): Seq[String] = {
    val penalties = regParam.toSeq.flatMap { reg =>
      Seq(s"l1=${reg * elasticNet * weightSum}", s"l2=${reg * (1 - elasticNet) * weightSum}")
    }
    (penalties ++ ofUser).flatMap(setting => Seq("--set", setting))
  }
}

/**
 * Trains with the program `seraphim`, as a process beside an executor.
 *
 * An ordinary stage encodes the rows as Arrow files. One task receives all of them, writes them to its disk, and runs
 * the program on them. What it returns is the model directory.
 */
private[ml] object NativeTraining extends Logging {
  /** Values of vectors in one block: about 5 MB. */
  private val BlockValues = 400000L

  def run(rows: RDD[Row], plan: TrainingPlan): Trained = {
    val blocks = rows.mapPartitionsWithIndex { (partition, rows) =>
      encode(rows, plan).zipWithIndex.map { case (block, number) => ((partition, number), block) }
    }
    val gathered = blocks.partitionBy(OneTask).mapPartitions(blocks => Iterator(train(blocks, plan)))
    try gathered.collect().head
    catch {
      case fault: org.apache.spark.SparkException => throw ProgramFailure.ofTask(fault)
    }
  }

  private def encode(rows: Iterator[Row], plan: TrainingPlan): Iterator[RecordBlock] = {
    val builders = Seq(false, true).map(isValidation => new BlockBuilder(plan, isValidation))
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => builders.foreach(_.close())))
    val full = rows.flatMap { row =>
      val isValidation = plan.schema.validation.exists(index => !row.isNullAt(index) && row.getBoolean(index))
      builders(if (isValidation) 1 else 0).add(row)
    }
    full ++ builders.iterator.flatMap(_.rest())
  }

  private final class BlockBuilder(plan: TrainingPlan, isValidation: Boolean) extends AutoCloseable {
    private val encoder = new RecordEncoder(plan.schema)
    private val weightIndex = plan.weight.flatMap(name => plan.schema.columns.find(_.name == name)).map(_.index)
    private var weight = 0.0

    /** Adds a record; returns a block if it is full. */
    def add(row: Row): Option[RecordBlock] = {
      encoder.add(row)
      weight += weightIndex.fold(1.0)(index => RecordEncoder.number(row.get(index)))
      if (encoder.weight < BlockValues) None else Some(block())
    }

    def rest(): Option[RecordBlock] = if (encoder.records == 0) None else Some(block())

    private def block(): RecordBlock = {
      val records = encoder.records
      val block = RecordBlock(isValidation, records, weight, encoder.vectorSize, encoder.toFile())
      weight = 0
      block
    }

    override def close(): Unit = encoder.close()
  }

  private object OneTask extends Partitioner {
    override def numPartitions: Int = 1
    override def getPartition(key: Any): Int = 0
  }

  private def train(blocks: Iterator[((Int, Int), RecordBlock)], plan: TrainingPlan): Trained = {
    val folder = Files.createTempDirectory("seraphim-fit")
    try {
      val totals = write(blocks, folder, plan)
      if (totals.records == 0) throw new ProgramFailure("the data have no records to train on")
      runProgram(folder, plan, totals)
      val report = new String(Files.readAllBytes(folder.resolve("report.json")), "UTF-8")
      Trained(DirectoryArchive.pack(folder.resolve("model")), report, totals.vectorSize)
    } finally DirectoryArchive.remove(folder)
  }

  private final case class Totals(records: Long, validation: Long, weight: Double, vectorSize: Option[Int])

  /** Writes the blocks as files whose order is that of the partitions, in whatever order they come. */
  private def write(blocks: Iterator[((Int, Int), RecordBlock)], folder: Path, plan: TrainingPlan): Totals = {
    val counts = mutable.Map(false -> 0L, true -> 0L)
    val weights = mutable.Map[(Int, Int), Double]()
    val sizes = mutable.TreeSet[Int]()
    Seq("rows", "validation").foreach(name => Files.createDirectory(folder.resolve(name)))
    blocks.foreach { case ((partition, number), block) =>
      val name = f"part-$partition%05d-$number%05d.arrow"
      Files.write(folder.resolve(if (block.isValidation) "validation" else "rows").resolve(name), block.file)
      counts(block.isValidation) += block.records
      if (!block.isValidation) weights((partition, number)) = block.weight
      if (block.vectorSize >= 0) sizes += block.vectorSize
    }
    if (sizes.size > 1) throw RecordEncoder.differentSizes(plan.features.head, sizes.head, sizes.last)
    // The order of a sum of weights is that of the partitions, too.
    Totals(counts(false), counts(true), weights.toSeq.sortBy(_._1).map(_._2).sum, sizes.headOption)
  }

  private def runProgram(folder: Path, plan: TrainingPlan, totals: Totals): Unit = {
    def path(name: String): String = folder.resolve(name).toString
    val label = plan.label.toSeq.flatMap(name => Seq("--label", name))
    val words = Seq(BundledProgram.find(plan.binary), "train", plan.algorithm, "--format", "arrow", "--data", path("rows")) ++ label ++
      plan.weight.toSeq.flatMap(name => Seq("--weight", name)) ++
      (if (totals.validation > 0) Seq("--validate", path("validation")) else Nil) ++
      Seq("--model", path("model"), "--report", path("report.json"), "--scratch", folder.toString) ++
      Seq("--checkpoint-every", "off", "--seed", plan.seed.toString, "--threads", plan.threads.toString) ++
      plan.tasks.toSeq.flatMap(count => Seq("--tasks", count.toString)) ++ plan.settings.words(totals.weight)
    val process = new ChildProcess(words)
    try {
      val lines = mutable.Queue[String]()
      val status = process.waitForEnd { line =>
        logInfo(line)
        lines.enqueue(line)
        if (lines.size > ProgramFailure.MaxLines) lines.dequeue()
      }
      if (status != 0) throw ProgramFailure.ofProgram(lines.toSeq, status)
    } finally process.close()
  }
}
