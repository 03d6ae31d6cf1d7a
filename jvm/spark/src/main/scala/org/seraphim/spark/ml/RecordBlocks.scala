package org.seraphim.spark.ml

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row

/** Some records of a partition as an Arrow file. */
private[ml] final case class RecordBlock(
    isValidation: Boolean,
    records: Int,
    weight: Double,
    vectorSize: Int,
    file: Array[Byte])

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
    private val weightIndex = plan.weight.flatMap(name => plan.schema.columns.find(_.name == name)).map(_.index)
    private var weight = 0.0

    def add(row: Row): Option[RecordBlock] = {
      encoder.add(row)
      weight += weightIndex.fold(1.0)(index => RecordEncoder.number(row.get(index)))
      if (encoder.weight < limit) None else Some(block())
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
}
