package org.seraphim.spark

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD

import org.seraphim.client.{FunctionCall, PushIdentity}

/**
 * A matrix of doubles on parameter servers: some [[ServerVector]]s of one pool as its rows, such as the centres of
 * clusters or the weights of classes. The driver only has handles.
 *
 * Operations of two matrices need the same number of rows, and vectors of one pool; others are an
 * `IllegalArgumentException`.
 */
final class ServerMatrix private[spark] (val rows: IndexedSeq[ServerVector]) {
  def pool: VectorPool = rows.head.pool
  def rowCount: Int = rows.size
  def columnCount: Long = pool.dimension

  /** A row. What changes the vector changes the matrix. */
  def apply(row: Int): ServerVector = rows(row)

  /** Reads all values, row by row. */
  def pull(): Array[Array[Double]] = rows.map(_.pull()).toArray

  /** Gives the matrix other values: an array for each row. */
  def push(values: Array[Array[Double]]): Unit = {
    checkRows(values.length)
    rows.zip(values).foreach { case (row, values) => row.push(values) }
  }

  /** Another matrix with the same values. It takes no memory until one of the two is changed. */
  def copy(): ServerMatrix = each(_.copy())

  /** Gives this matrix the value `value` everywhere. */
  def fill(value: Double): ServerMatrix = change(_.fill(value))

  /** Multiplies this matrix by `factor`. */
  def scale(factor: Double): ServerMatrix = change(_.scale(factor))

  /** Multiplies each row by its factor. */
  def scaleRows(factors: Array[Double]): ServerMatrix = {
    checkRows(factors.length)
    rows.zip(factors).foreach { case (row, factor) => row.scale(factor) }
    this
  }

  /** Adds `factor` times `other` to this matrix. */
  def axpy(factor: Double, other: ServerMatrix): ServerMatrix = changeWith(other)(_.axpy(factor, _))

  /** Adds `other` to this matrix. */
  def add(other: ServerMatrix): ServerMatrix = axpy(1.0, other)

  /** This matrix plus `factor` times `other`. */
  def plus(factor: Double, other: ServerMatrix): ServerMatrix = eachWith(other)(_.plus(factor, _))

  /** This matrix minus `other`. */
  def minus(other: ServerMatrix): ServerMatrix = plus(-1.0, other)

  /** This matrix times `factor`. */
  def times(factor: Double): ServerMatrix = each(_.times(factor))

  /** The inner products of the rows with a vector. */
  def multiply(vector: ServerVector): Array[Double] = rows.map(_.dot(vector)).toArray

  /** The sum of the products of all values. */
  def dot(other: ServerMatrix): Double = {
    checkRows(other.rowCount)
    rows.zip(other.rows).map { case (a, b) => a.dot(b) }.sum
  }

  /** The Frobenius norm. */
  def norm(): Double = math.sqrt(rows.map(row => math.max(0.0, row.dot(row))).sum)

  /** What the push function `name` makes of each row, as [[ServerVector.map]]. */
  def map(name: String): ServerMatrix = each(_.map(name))

  def map(name: String, argument: Double): ServerMatrix = each(_.map(name, argument))

  def map(name: String, argument: FunctionCall.Argument): ServerMatrix = each(_.map(name, argument))

  /** Waits until other processes see this matrix, and returns what they need to read it. One wait. */
  def share(): SharedMatrix = SharedMatrix(pool.share(rows: _*))

  private def each(result: ServerVector => ServerVector): ServerMatrix = new ServerMatrix(rows.map(result))

  private def eachWith(other: ServerMatrix)(result: (ServerVector, ServerVector) => ServerVector): ServerMatrix = {
    checkRows(other.rowCount)
    new ServerMatrix(rows.zip(other.rows).map { case (a, b) => result(a, b) })
  }

  private def change(action: ServerVector => Any): ServerMatrix = {
    rows.foreach(action)
    this
  }

  private def changeWith(other: ServerMatrix)(action: (ServerVector, ServerVector) => Any): ServerMatrix = {
    checkRows(other.rowCount)
    rows.zip(other.rows).foreach { case (a, b) => action(a, b) }
    this
  }

  private def checkRows(count: Int): Unit =
    if (count != rowCount) throw new IllegalArgumentException(s"$count rows for a matrix of $rowCount rows")
}

object ServerMatrix {
  /** A matrix of zeros with `rows` rows, and as many columns as the vectors of the pool have. */
  def zeros(pool: VectorPool, rows: Int): ServerMatrix = {
    if (rows < 1) throw new IllegalArgumentException(s"a matrix of $rows rows; it has one at least")
    new ServerMatrix(IndexedSeq.fill(rows)(pool.zeros()))
  }

  /** A matrix with these values: an array for each row. */
  def create(pool: VectorPool, values: Array[Array[Double]]): ServerMatrix = {
    val matrix = zeros(pool, values.length)
    matrix.push(values)
    matrix
  }

  /**
   * The sum over the partitions of an RDD of what `add` adds to arrays of zeros, one for each row. Each partition
   * counts once, whatever Spark runs again: a task stages its part, and the first commit of a partition counts.
   *
   * @param add gets the records of a partition and the arrays; it runs on executors
   */
  def sum[T](data: RDD[T], pool: VectorPool, rows: Int)(
      add: (Iterator[T], Array[Array[Double]]) => Unit): ServerMatrix = {
    pool.checkRoomForSums(data, rows)
    val targets = Seq.fill(rows)(pool.accumulator())
    val matrix = new ServerMatrix(targets.map(row => pool.make(LinearCombination.of(row))).toIndexedSeq)
    val shared = matrix.share()
    val token = pool.nextToken()
    try {
      val task = new SumTask(add, shared, token)
      data.sparkContext.runJob(data, (context: TaskContext, records: Iterator[T]) => task.run(context, records))
      matrix
    } finally pool.finishToken(token, targets)
  }

  private final class SumTask[T](
      add: (Iterator[T], Array[Array[Double]]) => Unit, target: SharedMatrix, token: Long) extends Serializable {

    def run(context: TaskContext, records: Iterator[T]): Unit = {
      val matrix = target.rows.head.serverMatrix
      val parts = Array.fill(target.rows.size)(new Array[Double](Math.toIntExact(matrix.columns)))
      add(records, parts)
      // Attempts of different stages and tasks have different numbers within a SparkContext.
      val staged = matrix.stage(new PushIdentity(token, context.partitionId(), context.taskAttemptId()))
      target.rows.zip(parts).foreach { case (row, part) => staged.add(row.row, part) }
      staged.commit()
    }
  }
}

/** What executors need to read a matrix. It does not own the matrix: the driver keeps it as long as tasks use this. */
final case class SharedMatrix private[spark] (rows: Seq[SharedVector]) {
  /** Reads all values, row by row. */
  def pull(): Array[Array[Double]] = rows.map(_.pull()).toArray

  /** Reads the values of a row. */
  def pull(row: Int): Array[Double] = rows(row).pull()
}
