package org.seraphim.spark

import scala.collection.mutable

import org.seraphim.client.{FunctionCall, PartialAnswers, ServerMatrix => ClientMatrix}

/**
 * Inner products of rows. Contents never change, so a product is asked for once. When one is missing, all products that
 * are likely to be needed next are asked for in the same request: those of rows that are new with all rows that
 * products were needed of lately. The lock of the pool guards it.
 */
private[spark] final class ProductCache(matrix: ClientMatrix, rows: () => Iterator[Row]) {
  import ProductCache._

  private val products = mutable.Map[Long, mutable.Map[Long, Double]]()
  private val lastUse = mutable.Map[Long, Long]()
  private val squares = mutable.Set[Long]()
  private var uses = 0L

  /** Number of products that servers have computed. */
  var computed = 0L

  /** The inner product of two combinations. */
  def dot(a: LinearCombination, b: LinearCombination): Double = {
    val pairs = for (i <- 0 until a.size; j <- 0 until b.size) yield Pair(a.rows(i), b.rows(j))
    uses += 1
    for (x <- a.asRow; y <- b.asRow if x eq y) squares += x.tag
    (a.rows.iterator ++ b.rows.iterator).foreach(row => lastUse(row.tag) = uses)
    val missing = pairs.filterNot(isKnown)
    if (missing.nonEmpty) fetchMissing(missing)
    var sum = 0.0
    var k = 0
    for (i <- 0 until a.size; j <- 0 until b.size) {
      sum += a.factors(i) * b.factors(j) * products(pairs(k).first.tag)(pairs(k).second.tag)
      k += 1
    }
    sum
  }

  /** Number of products that were asked for until now: a moment in the order of uses. */
  def moment: Long = uses

  /** Whether a product of a row was used after a moment. */
  def isUsedSince(moment: Long)(row: Row): Boolean = lastUse.get(row.tag).exists(_ > moment)

  /** Whether the inner product of a row with itself was asked for. */
  def isSquareUsed(row: Row): Boolean = squares.contains(row.tag)

  /** Asks for all products of a request. One wait. */
  def fetch(request: ProductRequest): Unit = {
    val answers = matrix.pullFunctions(java.util.Arrays.asList(request.calls: _*)).toArray(Array.empty[PartialAnswers])
    // All writes that were sent before are answered now.
    request.rows.foreach(_.slot.throwIfFailed())
    val found = request.products(answers.toSeq)
    computed += found.size
    found.foreach { case (first, second, value) => put(Pair(first, second), value) }
  }

  /** Notes that rows are likely to be used next, also with rows that are still to be computed. */
  def expect(rows: Row*): Unit = rows.foreach(row => lastUse(row.tag) = uses)

  /** Computes the products of `rows` with `before` from those with `now` and with `difference = now - before`. */
  def derive(before: Row, now: Row, difference: Row, rows: Seq[Row]): Unit =
    for (row <- rows; of = products.get(row.tag); a <- of.flatMap(_.get(now.tag)); b <- of.flatMap(_.get(difference.tag)))
      if (!isKnown(Pair(row, before))) put(Pair(row, before), a - b)

  def forget(slot: Slot): Unit = {
    products.remove(slot.tag).foreach(_.keysIterator.foreach(tag => products.get(tag).foreach(_ -= slot.tag)))
    lastUse -= slot.tag
    squares -= slot.tag
  }

  private def isKnown(pair: Pair): Boolean = products.get(pair.first.tag).exists(_.contains(pair.second.tag))

  /** Asks for missing products. New rows are multiplied in one pass, other pairs one by one. */
  private def fetchMissing(missing: Seq[Pair]): Unit = {
    val all = rows().toVector
    val fresh = all.filterNot(row => products.contains(row.tag)).takeRight(MaxFresh)
    val tags = fresh.map(_.tag).toSet
    val (ofFresh, ofOthers) = distinct(missing).partition(pair => tags(pair.first.tag) || tags(pair.second.tag))
    val active = all.filter(row => lastUse.get(row.tag).exists(_ > uses - RecentUses)).takeRight(MaxActive)
    fetch(new ProductRequest(fresh, ofFresh.flatMap(_.rows) ++ active, ofOthers.map(pair => (pair.first, pair.second))))
  }

  private def distinct(pairs: Seq[Pair]): Seq[Pair] = {
    val seen = mutable.Set[(Long, Long)]()
    pairs.filter(pair => seen.add(pair.key))
  }

  private def put(pair: Pair, value: Double): Unit = {
    products.getOrElseUpdate(pair.first.tag, mutable.Map())(pair.second.tag) = value
    products.getOrElseUpdate(pair.second.tag, mutable.Map())(pair.first.tag) = value
  }
}

private[spark] object ProductCache {
  /** New rows and others in one request. */
  private val MaxFresh = 8
  private val MaxActive = 64
  /** A row is likely to be used again if it was used among so many last products: those of about two iterations. */
  private val RecentUses = 128L

  private final case class Pair(first: Row, second: Row) {
    def key: (Long, Long) = (math.min(first.tag, second.tag), math.max(first.tag, second.tag))

    def rows: Seq[Row] = Seq(first, second)
  }
}
