package org.seraphim.spark

/**
 * Closures of a program on the values of vectors. The servers do not run them: values come to the driver in chunks, and
 * the results go back. This is slow, but works for any closure with constant memory.
 */
private[spark] object VectorChunks {
  /** Values that are in memory at the same time, of each vector. */
  private val Chunk = 1 << 20

  /** A vector with `f(i, a(i), b(i))`. */
  def zip(a: ServerVector, b: ServerVector)(f: (Int, Double, Double) => Double): ServerVector = {
    val pool = a.pool
    val (left, right) = (new Array[Double](length(a, 0)), new Array[Double](length(a, 0)))
    val row = pool.rowWith { column =>
      val count = length(a, column)
      a.pull(column, left, count)
      if (b ne a) b.pull(column, right, count) else System.arraycopy(left, 0, right, 0, count)
      Array.tabulate(count)(k => f((column + k).toInt, left(k), right(k)))
    }
    row.slot.isOpaque = true
    pool.make(LinearCombination.of(row))
  }

  /** Calls `f` with all values in their order. */
  def foreach(a: ServerVector)(f: Double => Unit): Unit = {
    val values = new Array[Double](length(a, 0))
    var column = 0L
    while (column < a.dimension) {
      val count = length(a, column)
      a.pull(column, values, count)
      var k = 0
      while (k < count) {
        f(values(k))
        k += 1
      }
      column += count
    }
  }

  private def length(a: ServerVector, column: Long): Int = math.min(Chunk.toLong, a.dimension - column).toInt
}
