package org.seraphim.spark

import breeze.linalg.{NumericOps, QuasiTensor}

import org.seraphim.client.FunctionCall

/**
 * A vector of doubles on parameter servers. The driver only has a handle. Sums, multiples and inner products are
 * computed when their values are needed: a vector is a linear combination of rows on the servers until then.
 *
 * Operations of two vectors need vectors of one pool; others are an `IllegalArgumentException`. A vector that is used
 * after the end of its scope is an `IllegalStateException`. Two vectors are equal (`==`) if they are the same sums and
 * multiples of the same vectors. Values are compared, in one wait, only if one of the two is the result of a closure.
 */
final class ServerVector private[spark] (
    val pool: VectorPool,
    private var content: LinearCombination,
    private var scope: Option[Scope])
    extends NumericOps[ServerVector]
    with QuasiTensor[Int, Double] {

  override def repr: ServerVector = this

  /** Number of values. */
  def dimension: Long = pool.dimension

  /** Reads all values; at most 2^31 - 1. */
  def pull(): Array[Double] = {
    val values = new Array[Double](Math.toIntExact(dimension))
    pull(0, values, values.length)
    values
  }

  /** Reads `count` values from `column` on into `out`. */
  def pull(column: Long, out: Array[Double], count: Int): Unit = pool.pull(row(), column, out, count)

  /** Gives this vector other values. */
  def push(values: Array[Double]): Unit = {
    if (values.length != dimension) {
      throw new IllegalArgumentException(s"${values.length} values for a vector of $dimension")
    }
    assign(LinearCombination.of(pool.rowWith(_ => values)))
  }

  /** Another vector with the same values. It takes no memory until one of the two is changed. */
  def copy(): ServerVector = pool.make(current)

  /** The inner product. */
  def dot(other: ServerVector): Double = pool.dot(current, contentOf(other))

  /** The Euclidean norm. */
  def norm(): Double = math.sqrt(math.max(0.0, dot(this)))

  /** Adds `factor` times `other` to this vector. */
  def axpy(factor: Double, other: ServerVector): ServerVector = assign(current.plus(factor, contentOf(other)))

  /** Adds `other` to this vector. */
  def add(other: ServerVector): ServerVector = axpy(1.0, other)

  /** Multiplies this vector by `factor`. */
  def scale(factor: Double): ServerVector = assign(current.scaled(factor))

  /** Makes this vector equal to `other`. */
  def assign(other: ServerVector): ServerVector = assign(contentOf(other))

  /** Gives this vector the value `value` everywhere. */
  def fill(value: Double): ServerVector = assign(contentOf(pool.fill(value)))

  /** This vector plus `factor` times `other`. */
  def plus(factor: Double, other: ServerVector): ServerVector = pool.make(current.plus(factor, contentOf(other)))

  /** This vector minus `other`, computed at once: optimizers use such differences for many products. */
  def minus(other: ServerVector): ServerVector = {
    val difference = pool.make(current.plus(-1.0, contentOf(other)))
    for (a <- content.asRow; b <- other.rowIfComputed) pool.subtracted(a, b, difference.row())
    difference.row()
    difference
  }

  /** This vector times `factor`. */
  def times(factor: Double): ServerVector = pool.make(current.scaled(factor))

  /**
   * What the push function `name` makes of this vector (`docs/ps-functions.md`): a function that reads and writes one
   * row, such as `exp`. Waits, because functions may fail.
   */
  def map(name: String): ServerVector = result(FunctionBuilder(name, Seq(row())))

  /** The same for a function with a number as argument, such as `power`. */
  def map(name: String, argument: Double): ServerVector = result(FunctionBuilder(name, Seq(row()), Some(argument)))

  /** The same for a function with another argument, such as `clip`. */
  def map(name: String, argument: FunctionCall.Argument): ServerVector =
    result(FunctionBuilder.of(name, Seq(row()), argument))

  /** What the push function `name` makes of this vector and another one, such as `mul`. */
  def zip(name: String, other: ServerVector): ServerVector = {
    contentOf(other)
    result(FunctionBuilder(name, Seq(row(), other.row())))
  }

  /** The answer of the pull function `name`, which is a sum over this vector: `sum`, `norm_1` or `square_sum`. */
  def reduce(name: String): Double = {
    if (!ServerVector.Sums.contains(name)) {
      val sums = ServerVector.Sums.mkString(", ")
      throw new IllegalArgumentException(s"the pull function $name is no sum; sums are $sums")
    }
    pool.reduce(name, row())
  }

  private def result(function: FunctionBuilder): ServerVector = {
    val row = pool.run(function)
    pool.await(row)
    pool.make(LinearCombination.of(row))
  }

  /** The row on the servers with these values. They are computed if they were not yet, without a wait. */
  private[spark] def row(): Row = {
    val row = pool.rowOf(current)
    // Zeros stay zeros, so that sums with them have no further term.
    if (content.size > 0 && content.asRow.isEmpty) assign(LinearCombination.of(row))
    row
  }

  /** The row with these values, if it need not be computed. */
  private def rowIfComputed: Option[Row] =
    if (content.size == 0) Some(pool.rowOf(content)) else content.asRow

  private[spark] def current: LinearCombination = {
    if (scope.exists(_.isEnded)) throw new IllegalStateException(Scope.UseAfterEnd)
    if (content.asRow.isEmpty) pool.known(content).foreach(row => assign(LinearCombination.of(row)))
    content
  }

  private def contentOf(other: ServerVector): LinearCombination = {
    if (other.pool ne pool) {
      throw new IllegalArgumentException(
        s"vectors of different pools cannot be combined: one belongs to ${pool.session}, the other to " +
          s"${other.pool.session}; make both with one VectorPool")
    }
    other.current
  }

  private def assign(newContent: LinearCombination): ServerVector = {
    if (scope.exists(_.isEnded)) throw new IllegalStateException(Scope.UseAfterEnd)
    val next = if (newContent.size > ServerVector.MaxTerms) LinearCombination.of(pool.rowOf(newContent)) else newContent
    content = next
    moveRows(scope)
    this
  }

  /** Keeps the vector until the end of another scope. */
  private[spark] def moveTo(outer: Option[Scope]): Unit = {
    current
    moveRows(outer)
    scope = outer
  }

  /** What an outer vector refers to must not end with an inner scope. */
  private def moveRows(outer: Option[Scope]): Unit = pool.synchronized {
    val depth = outer.fold(0)(_.depth)
    for (row <- content.rows; inner <- row.slot.scope if inner.depth > depth) inner.moveTo(row.slot, outer)
  }

  override def equals(other: Any): Boolean = other match {
    case that: ServerVector => (that.pool eq pool) && (current.key == that.current.key || hasValuesOf(that))
    case _ => false
  }

  private def hasValuesOf(that: ServerVector): Boolean =
    (isOpaque || that.isOpaque) && pool.haveSameValues(row(), that.row())

  private def isOpaque: Boolean = content.asRow.exists(_.slot.isOpaque)

  override def hashCode(): Int = System.identityHashCode(pool)

  override def toString: String = s"ServerVector of $dimension values on ${pool.session}"

  private def unsupported: Nothing = throw new UnsupportedOperationException(
    "single values of a ServerVector cannot be reached; pull() reads all of them")

  override def apply(i: Int): Double = {
    val value = new Array[Double](1)
    pull(i.toLong, value, 1)
    value(0)
  }
  override def update(i: Int, value: Double): Unit = unsupported
  override def keySet: scala.collection.Set[Int] = unsupported
  override def iterator: Iterator[(Int, Double)] = unsupported
  override def activeIterator: Iterator[(Int, Double)] = unsupported
  override def valuesIterator: Iterator[Double] = unsupported
  override def activeValuesIterator: Iterator[Double] = unsupported
  override def keysIterator: Iterator[Int] = unsupported
  override def activeKeysIterator: Iterator[Int] = unsupported
}

object ServerVector {
  /** Terms of a combination after which it is computed. */
  private val MaxTerms = 64
  private val Sums = Seq("sum", "norm_1", "square_sum")
}
