package org.seraphim.spark

import scala.collection.mutable.ArrayBuffer

/**
 * What a vector is: a sum of rows times factors, in the order of the tags of the rows. Optimizers only add and scale,
 * so that most of their vectors never need to be computed: inner products follow from those of the rows.
 */
private[spark] final class LinearCombination private (val rows: Array[Row], val factors: Array[Double]) {

  def size: Int = rows.length

  /** The row, if the combination is a row as it is. */
  def asRow: Option[Row] = if (size == 1 && factors(0) == 1.0) Some(rows(0)) else None

  def scaled(factor: Double): LinearCombination =
    if (factor == 0.0) LinearCombination.Zero
    else if (factor == 1.0) this
    else new LinearCombination(rows, factors.map(_ * factor))

  /** This plus `factor` times `other`. */
  def plus(factor: Double, other: LinearCombination): LinearCombination = {
    val newRows = new ArrayBuffer[Row](size + other.size)
    val newFactors = new ArrayBuffer[Double](size + other.size)
    var (i, j) = (0, 0)
    while (i < size || j < other.size) {
      val isLeft = j == other.size || i < size && rows(i).tag <= other.rows(j).tag
      val isRight = i == size || j < other.size && other.rows(j).tag <= rows(i).tag
      val row = if (isLeft) rows(i) else other.rows(j)
      val sum = (if (isLeft) factors(i) else 0.0) + (if (isRight) factor * other.factors(j) else 0.0)
      if (sum != 0.0) {
        newRows += row
        newFactors += sum
      }
      if (isLeft) i += 1
      if (isRight) j += 1
    }
    new LinearCombination(newRows.toArray, newFactors.toArray)
  }

  /** What is equal for equal combinations, and does not keep the rows. */
  def key: (Seq[Long], Seq[Double]) = (rows.map(_.tag).toVector, factors.toVector)
}

private[spark] object LinearCombination {
  val Zero = new LinearCombination(Array.empty, Array.empty)

  def of(row: Row): LinearCombination = new LinearCombination(Array(row), Array(1.0))
}
