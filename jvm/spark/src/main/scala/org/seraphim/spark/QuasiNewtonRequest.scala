package org.seraphim.spark

import org.seraphim.client.FunctionCall

import org.seraphim.spark.EvaluationLog.Evaluation

/**
 * All inner products that L-BFGS needs after an evaluation, in one pass over the rows: the pull function
 * `quasi_newton_products` (`crates/algo/src/descent/function/quasi_newton.rs`) and one `dot`. With
 * x and g of the evaluation and of that before, `s = x - x0`, `y = g - g0`, and a history of pairs S and Y.
 */
private[spark] final class QuasiNewtonRequest(
    now: Evaluation,
    before: Evaluation,
    val s: Row,
    val y: Row,
    history: Seq[(Row, Row)],
    ones: Row) {

  /** Rows z, g, d, z0, g0, S, Y; the penalty has l1 = 0 and l2 = 1, so that v is g and the second answer 0.5 |z|^2. */
  def calls: Seq[FunctionCall] = {
    val first = Seq(now.x, now.gradient, ones, before.x, before.gradient)
    val rows = first ++ history.map(_._1) ++ history.map(_._2)
    val penalty = new FunctionCall.Argument().number(0.0).number(1.0).whole(Long.MaxValue)
    Seq(
      FunctionCall.of("quasi_newton_products", rows.map(_.number).toArray, Array.empty[Int]).`with`(penalty),
      FunctionCall.of("dot", Array(now.gradient.number, before.gradient.number), Array.empty[Int]))
  }

  /** The rows of all products: they are thrown away if one of them could not be written. */
  def rows: Seq[Row] =
    Seq(now.x, now.gradient, before.x, before.gradient, s, y) ++ history.map(_._1) ++ history.map(_._2)

  /** The products of pairs of rows. */
  def products(scalars: Array[Double], gradients: Double): Seq[(Row, Row, Double)] = {
    val g = now.gradient
    val fixed = Seq(
      (now.x, now.x, 2 * scalars(1)),
      (before.gradient, s, scalars(2)),
      (s, y, scalars(3)),
      (s, g, scalars(4)),
      (y, y, scalars(5)),
      (y, g, scalars(6)),
      (g, g, scalars(7)),
      (g, before.gradient, gradients))
    val ofPairs = history.zipWithIndex.flatMap { case ((older, change), i) =>
      val at = QuasiNewtonRequest.FixedScalars + QuasiNewtonRequest.PairScalars * i
      Seq(
        (older, y, scalars(at)),
        (older, g, scalars(at + 1)),
        (change, s, scalars(at + 2)),
        (change, y, scalars(at + 3)),
        (change, g, scalars(at + 4)))
    }
    fixed ++ ofPairs
  }
}

private[spark] object QuasiNewtonRequest {
  val FixedScalars = 8
  val PairScalars = 5
}
