package org.seraphim.spark.ml

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row

/** Some records of a partition as an Arrow file, and what is to be known of them. */
private[ml] final case class RecordBlock(totals: RecordTotals, file: Array[Byte])

/** The worker that gets a block, the partition that the block is from, and its number among those of the partition. */
private[ml] final case class BlockKey(worker: Int, partition: Int, number: Int)

/**
 * Encodes the rows as blocks for each worker. The rows of a partition go to the workers in turn, so that all workers
 * have equally many, and the same partitions give the same blocks.
 */
private[ml] object RecordBlocks {
  /** Values of vectors in one block: about 5 MB. A partition fills blocks of all workers at once. */
  private val BlockValues = 400000L
  private val LeastBlockValues = 20000L

  /** The blocks, in one partition for each worker. */
  def encode(rows: RDD[Row], plan: TrainingPlan): RDD[(BlockKey, RecordBlock)] = {
    val blocks = rows.mapPartitionsWithIndex { (partition, rows) =>
      encode(rows, partition, plan).zipWithIndex.map { case ((worker, block), number) =>
        (BlockKey(worker, partition, number), block)
      }
    }
    blocks.partitionBy(new WorkerPartitioner(plan.workers))
  }

  private final class WorkerPartitioner(workers: Int) extends Partitioner {
    override def numPartitions: Int = workers
    override def getPartition(key: Any): Int = key.asInstanceOf[BlockKey].worker
  }

  private def encode(rows: Iterator[Row], partition: Int, plan: TrainingPlan): Iterator[(Int, RecordBlock)] = {
    val kinds = Seq(false, true).map(isValidation => new BlockBuilders(plan, partition, isValidation))
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => kinds.foreach(_.close())))
    val full = rows.flatMap { row =>
      val isValidation = plan.schema.validation.exists(index => !row.isNullAt(index) && row.getBoolean(index))
      kinds(if (isValidation) 1 else 0).add(row)
    }
    full ++ kinds.iterator.flatMap(_.rest())
  }

  /** The blocks of one kind that a partition fills, one for each worker. */
  private final class BlockBuilders(plan: TrainingPlan, partition: Int, isValidation: Boolean) extends AutoCloseable {
    private val limit = math.max(BlockValues / plan.workers, LeastBlockValues)
    private val builders = Seq.fill(plan.workers)(new BlockBuilder(plan, isValidation, limit))
    // Partitions that have a record more than others give it to different workers.
    private var next = partition % plan.workers

    /** Adds a record; returns a block if it is full. */
    def add(row: Row): Option[(Int, RecordBlock)] = {
      val worker = next
      next = (next + 1) % plan.workers
      builders(worker).add(row).map(block => (worker, block))
    }

    def rest(): Iterator[(Int, RecordBlock)] =
      builders.iterator.zipWithIndex.flatMap { case (builder, worker) => builder.rest().map(block => (worker, block)) }

    override def close(): Unit = builders.foreach(_.close())
  }

  private final class BlockBuilder(plan: TrainingPlan, isValidation: Boolean, limit: Long) extends AutoCloseable {
    private val encoder = new RecordEncoder(plan.schema)
    private val weightIndex = indexOf(plan.weight)
    private val labelIndex = indexOf(plan.label)
    private val labels = new LabelTally

    private def indexOf(column: Option[String]): Option[Int] =
      column.flatMap(name => plan.schema.columns.find(_.name == name)).map(_.index)

    def add(row: Row): Option[RecordBlock] = {
      encoder.add(row)
      val number = (index: Int) => RecordEncoder.number(row.get(index))
      labels.add(labelIndex.fold(0.0)(number), weightIndex.fold(1.0)(number))
      if (encoder.weight < limit) None else Some(block())
    }

    def rest(): Option[RecordBlock] = if (encoder.records == 0) None else Some(block())

    private def block(): RecordBlock = {
      val records = encoder.records.toLong
      val sizes = if (encoder.vectorSize < 0) Set.empty[Int] else Set(encoder.vectorSize)
      val ofTraining = if (isValidation) LabelStatistics.none else labels.take()
      val totals =
        RecordTotals(if (isValidation) 0 else records, if (isValidation) records else 0, sizes, ofTraining)
      RecordBlock(totals, encoder.toFile())
    }

    override def close(): Unit = encoder.close()
  }
}
