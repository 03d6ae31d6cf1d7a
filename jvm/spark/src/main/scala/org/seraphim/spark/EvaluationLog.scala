package org.seraphim.spark

import java.lang.ref.WeakReference

import scala.collection.mutable

/**
 * The points at which an objective was computed, and what a quasi-Newton method made of them: the steps s between
 * points that it has accepted, and the changes y of the gradient over them. From it follows which inner products the
 * method needs after the next evaluation, so that all can be asked for in one request. The lock of the pool guards it.
 */
private[spark] final class EvaluationLog {
  import EvaluationLog._

  private var last: Option[Evaluation] = None
  private var accepted: Option[Evaluation] = None
  private var step: Option[Row] = None
  private val pairs = mutable.Queue[(WeakReference[Row], WeakReference[Row])]()

  /** The evaluation before. */
  def previous: Option[Evaluation] = last

  /** The evaluation from which the next step is likely to be measured. */
  def base: Option[Evaluation] = accepted

  /** Notes an evaluation. */
  def evaluated(evaluation: Evaluation): Unit = {
    last = Some(evaluation)
    if (accepted.isEmpty) accepted = last
  }

  /** Notes that `difference` is `a - b`. Returns whether a step was accepted with it. */
  def subtracted(a: Row, b: Row, difference: Row): Boolean = {
    val isOfPoints = for (to <- last; from <- accepted) yield (to.x eq a) && (from.x eq b)
    val isOfGradients = for (to <- last; from <- accepted) yield (to.gradient eq a) && (from.gradient eq b)
    if (isOfPoints.contains(true)) step = Some(difference)
    val isAccepted = isOfGradients.contains(true) && step.isDefined
    if (isAccepted) {
      step.foreach(s => pairs.enqueue((new WeakReference(s), new WeakReference(difference))))
      while (pairs.size > MaxPairs) pairs.dequeue()
      step = None
      accepted = last
    }
    isAccepted
  }

  /** The pairs of s and y that are still in use. */
  def history(isInUse: Row => Boolean): Seq[(Row, Row)] =
    for ((s, y) <- pairs.toList; first <- Option(s.get); second <- Option(y.get) if isInUse(first) && isInUse(second))
      yield (first, second)

  def clear(): Unit = {
    last = None
    accepted = None
    step = None
    pairs.clear()
  }
}

private[spark] object EvaluationLog {
  /** Longer histories are asked for pair by pair. */
  private val MaxPairs = 40

  /** A point and the gradient there. */
  final case class Evaluation(x: Row, gradient: Row)
}
