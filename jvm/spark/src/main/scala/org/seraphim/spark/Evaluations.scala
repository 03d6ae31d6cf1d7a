package org.seraphim.spark

import org.seraphim.spark.EvaluationLog.Evaluation

/**
 * Asks for the inner products of a quasi-Newton method when its objective was computed, before it needs them. The lock
 * of the pool guards it.
 */
private[spark] final class Evaluations(pool: VectorPool, products: ProductCache) {
  private val log = new EvaluationLog
  /** Differences that a method is likely to compute next. This keeps their rows until then. */
  private var anticipated: Seq[Row] = Seq.empty
  /** When the last step of a method was accepted, in uses of products. */
  private var lastStep = 0L

  /** Notes an evaluation, and asks for the products that are needed after it, in one wait. */
  def evaluated(now: Evaluation): Unit = {
    for (before <- log.base if (before.x ne now.x) && isInUse(before)) {
      val (s, y) = (difference(now.x, before.x), difference(now.gradient, before.gradient))
      val history = log.history(products.isUsedSince(lastStep))
      val ones = pool.constant("ones")(pool.fill(1.0)).row()
      products.fetch(new QuasiNewtonRequest(now, before, s, y, history, ones))
      anticipated = Seq(s, y)
    }
    log.evaluated(now)
    if (!log.base.exists(isInUse)) log.clear()
  }

  /** Notes that a vector was computed as a difference. */
  def subtracted(a: Row, b: Row, difference: Row): Unit =
    if (log.subtracted(a, b, difference)) {
      lastStep = products.moment
      anticipated = Seq.empty
    }

  private def isInUse(evaluation: Evaluation): Boolean =
    !evaluation.x.slot.isFreed && !evaluation.gradient.slot.isFreed

  private def difference(a: Row, b: Row): Row =
    pool.rowOf(LinearCombination.of(a).plus(-1.0, LinearCombination.of(b)))
}
