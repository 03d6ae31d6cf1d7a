package org.seraphim.spark

import org.seraphim.spark.EvaluationLog.Evaluation

/** Asks for inner products when an objective was computed, before a method needs them. */
private[spark] trait EvaluationPlan {

  /** Is called with each evaluation. The lock of the pool is held. */
  def evaluated(now: Evaluation): Unit
}

/**
 * The plan for optimizers that tell nothing, such as those of breeze: what they will need follows from the differences
 * that they compute. The lock of the pool guards it.
 */
private[spark] final class Evaluations(pool: VectorPool, products: ProductCache) extends EvaluationPlan {
  private val log = new EvaluationLog
  /** Differences that a method is likely to compute next. This keeps their rows until then. */
  private var anticipated: Seq[Row] = Seq.empty
  /** When the last step of a method was accepted, in uses of products. */
  private var lastStep = 0L

  override def evaluated(now: Evaluation): Unit = {
    for (before <- log.base if (before.x ne now.x) && isInUse(before)) {
      val history = log.history(products.isUsedSince(lastStep))
      val hasSquares = log.previous.exists(last => products.isSquareUsed(last.x))
      val step = new StepProducts(pool, now, before, now.gradient)
      products.fetch(step.request(history, if (hasSquares) Seq((now.x, now.x)) else Seq.empty))
      step.derive(products)
      anticipated = Seq(step.s, step.y)
      products.expect(anticipated: _*)
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
}

/**
 * What a quasi-Newton method needs after an evaluation (Chen et al., "Large-scale L-BFGS using MapReduce", NIPS 2014):
 * the products of the step s, of the change y of the gradient and of the slope with each other and with the pairs of
 * the history. The slope is the gradient or, with an L1 penalty, the pseudo-gradient.
 */
private[spark] final class StepProducts(pool: VectorPool, now: Evaluation, before: Evaluation, slope: Row) {
  val s: Row = difference(now.x, before.x)
  val y: Row = difference(now.gradient, before.gradient)

  def request(history: Seq[(Row, Row)], pairs: Seq[(Row, Row)], others: Seq[Row] = Seq.empty): ProductRequest =
    new ProductRequest(Seq(slope, s, y), history.map(_._1) ++ history.map(_._2) ++ others, pairs)

  /** The products with the gradient before follow from those with the gradient and with its change. */
  def derive(products: ProductCache): Unit =
    products.derive(before.gradient, now.gradient, y, Seq(now.gradient, s, y))

  private def difference(a: Row, b: Row): Row =
    pool.rowOf(LinearCombination.of(a).plus(-1.0, LinearCombination.of(b)))
}
