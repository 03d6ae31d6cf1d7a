package org.seraphim.spark

import scala.collection.mutable

import org.seraphim.client.{FunctionCall, PartialAnswers, ServerMatrix}

/**
 * Inner products of rows. Contents never change, so a product is asked for once. When one is missing, all products that
 * are likely to be needed next are asked for in the same request: those of rows that are new with all rows that
 * products were needed of lately. The lock of the pool guards it.
 */
private[spark] final class ProductCache(matrix: ServerMatrix, rows: () => Iterator[Row]) {
  import ProductCache._

  private val products = mutable.Map[Long, mutable.Map[Long, Double]]()
  private val lastUse = mutable.Map[Long, Long]()
  private var uses = 0L

  /** Number of products that servers have computed. */
  var computed = 0L

  /** The inner product of two combinations. */
  def dot(a: LinearCombination, b: LinearCombination): Double = {
    val pairs = for (i <- 0 until a.size; j <- 0 until b.size) yield Pair(a.rows(i), b.rows(j))
    uses += 1
    (a.rows.iterator ++ b.rows.iterator).foreach(row => lastUse(row.tag) = uses)
    val missing = pairs.filterNot(isKnown)
    if (missing.nonEmpty) fetch(missing)
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

  /** Asks for all products of a request. One wait. */
  def fetch(request: QuasiNewtonRequest): Unit = {
    val answers = matrix.pullFunctions(java.util.Arrays.asList(request.calls: _*))
    request.rows.foreach(_.slot.throwIfFailed())
    val found = request.products(answers.get(0).sums(), answers.get(1).sum())
    computed += found.size
    // The differences are likely to be used next, also with rows that are still to be computed.
    Seq(request.s, request.y).foreach(row => lastUse(row.tag) = uses)
    found.foreach { case (first, second, value) => put(Pair(first, second), value) }
  }

  def forget(slot: Slot): Unit = {
    products.remove(slot.tag).foreach(_.keysIterator.foreach(tag => products.get(tag).foreach(_ -= slot.tag)))
    lastUse -= slot.tag
  }

  private def isKnown(pair: Pair): Boolean = products.get(pair.first.tag).exists(_.contains(pair.second.tag))

  private def fetch(missing: Seq[Pair]): Unit = {
    val required = distinct(missing)
    val wanted = distinct(required ++ likely()).take(math.max(required.size, MaxPairs))
    val calls = wanted.map { pair =>
      FunctionCall.of("dot", Array(pair.first.number, pair.second.number), Array.empty[Int])
    }
    val answers = matrix.pullFunctions(java.util.Arrays.asList(calls: _*)).toArray(Array.empty[PartialAnswers])
    // All writes that were sent before are answered now.
    wanted.foreach(_.throwIfFailed())
    computed += wanted.size
    wanted.zip(answers).foreach { case (pair, answer) => put(pair, answer.sum()) }
  }

  /** Products of new rows with those that were used lately, and with each other. */
  private def likely(): Seq[Pair] = {
    val all = rows().toVector
    val fresh = all.filterNot(row => products.contains(row.tag))
    val active = all.filter(row => lastUse.get(row.tag).exists(_ > uses - RecentUses))
    for (first <- fresh; second <- active ++ fresh; pair = Pair(first, second) if !isKnown(pair)) yield pair
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
  /** Products in one request. */
  private val MaxPairs = 256
  /** A row is likely to be used again if it was used among so many last products: those of about two iterations. */
  private val RecentUses = 128L

  private final case class Pair(first: Row, second: Row) {
    def key: (Long, Long) = (math.min(first.tag, second.tag), math.max(first.tag, second.tag))

    def throwIfFailed(): Unit = {
      first.slot.throwIfFailed()
      second.slot.throwIfFailed()
    }
  }
}
