package org.seraphim.spark

import breeze.optimize.FirstOrderMinimizer.ConvergenceCheck
import breeze.optimize.{BacktrackingLineSearch, CachedDiffFunction, DiffFunction, FirstOrderMinimizer, LBFGS, OWLQN}

import org.seraphim.spark.EvaluationLog.Evaluation
import org.seraphim.spark.ServerVectorSpace.space

/**
 * breeze's L-BFGS in its vector-free form (Chen et al., "Large-scale L-BFGS using MapReduce", NIPS 2014): after each
 * evaluation one request asks the servers for the inner products of the new vectors with all vectors of the history.
 * The two loops then only compute with these numbers, and the new point is one linear combination. Results are those
 * of breeze but for rounding. [[LBFGS]] itself runs on vectors too, with about as few waits: it guesses from the
 * differences that are computed which products it will need, and this class knows.
 *
 * @param m number of pairs of the history
 */
class GramLBFGS(convergenceCheck: ConvergenceCheck[ServerVector], m: Int)
    extends LBFGS[ServerVector](convergenceCheck, m)
    with GramSteps {

  def this(maxIter: Int = -1, m: Int = 7, tolerance: Double = 1e-9) =
    this(FirstOrderMinimizer.defaultConvergenceCheck[ServerVector](maxIter, tolerance), m)

  override protected def historyLimit: Int = m

  override protected def plan(
      pool: VectorPool,
      state: State,
      pairs: Seq[(Row, Row)],
      direction: ServerVector): GramPlan =
    new GramPlan(pool, Evaluation(state.x.row(), state.grad.row()), pairs)
}

/**
 * breeze's OWL-QN in the same form, with one L1 penalty for all columns. It waits about three times per iteration with
 * one evaluation, and two times more for each further one.
 *
 * @param l1 the penalty, at least 0
 */
class GramOWLQN(convergenceCheck: ConvergenceCheck[ServerVector], m: Int, l1: Double)
    extends OWLQN[Int, ServerVector](convergenceCheck, m, (_: Int) => l1)
    with GramSteps {
  require(l1 >= 0 && !l1.isInfinite, s"l1 is $l1, expected a finite number >= 0")

  def this(maxIter: Int, m: Int, l1: Double, tolerance: Double = 1e-8) =
    this(FirstOrderMinimizer.defaultConvergenceCheck[ServerVector](maxIter, tolerance), m, l1)

  override protected def historyLimit: Int = m

  private def penalties(pool: VectorPool): ServerVector = pool.constant(("penalty", l1))(pool.fill(l1))

  private def slope(x: ServerVector, gradient: ServerVector): ServerVector =
    if (l1 == 0.0) gradient else OwlqnKernels.slope(x, gradient, penalties(x.pool))

  override protected def adjust(x: ServerVector, gradient: ServerVector, value: Double): (Double, ServerVector) = {
    val penalty = if (l1 == 0.0) 0.0 else penalties(x.pool).dot(OwlqnKernels.magnitude(x))
    (value + penalty, slope(x, gradient))
  }

  override protected def plan(
      pool: VectorPool,
      state: State,
      pairs: Seq[(Row, Row)],
      direction: ServerVector): GramPlan =
    new GramPlan(pool, Evaluation(state.x.row(), state.grad.row()), pairs, Seq(direction.row())) {
      override protected def slopeOf(now: Evaluation): Row = slope(vector(now.x), vector(now.gradient)).row()

      override protected def furtherPairs(now: Evaluation): Seq[(Row, Row)] =
        super.furtherPairs(now) ++ (
          if (l1 == 0.0) Seq.empty else Seq((penalties(pool).row(), OwlqnKernels.magnitude(vector(now.x)).row())))

      private def vector(row: Row): ServerVector = pool.make(LinearCombination.of(row))
    }

  /** As in breeze, but without the product of direction and gradient, which nothing uses. */
  override protected def determineStepSize(state: State, f: DiffFunction[ServerVector], dir: ServerVector): Double = {
    val along = new DiffFunction[Double] {
      override def calculate(alpha: Double): (Double, Double) = {
        val x = takeStep(state, dir, alpha)
        val (value, gradient) = f.calculate(x)
        val (adjustedValue, adjustedGradient) = adjust(x, gradient, value)
        (adjustedValue, adjustedGradient.dot(dir))
      }
    }
    val isFirst = state.iter < 1
    val search = new BacktrackingLineSearch(state.value, shrinkStep = if (isFirst) 0.1 else 0.5)
    search.minimize(along, if (isFirst) 0.5 / state.grad.norm() else 1.0)
  }
}

/** What the two optimizers share: a history whose vectors are known, and a plan for the products of each evaluation. */
private[spark] trait GramSteps extends LBFGS[ServerVector] {

  /** Number of pairs of the history. */
  protected def historyLimit: Int

  /** What is needed after the next evaluations, which are along `direction` from the point of `state`. */
  protected def plan(pool: VectorPool, state: State, pairs: Seq[(Row, Row)], direction: ServerVector): GramPlan

  override protected def adjustFunction(f: DiffFunction[ServerVector]): DiffFunction[ServerVector] =
    f match {
      case known: GramObjective => known
      case other => new GramObjective(other)
    }

  override protected def initialHistory(f: DiffFunction[ServerVector], x: ServerVector): History =
    new GramHistory(historyLimit)

  override protected def chooseDescentDirection(state: State, f: DiffFunction[ServerVector]): ServerVector = {
    val direction = super.chooseDescentDirection(state, f)
    (f, state.history) match {
      case (objective: GramObjective, history: GramHistory) =>
        val pairs = history.pairs.map { case (s, y) => (s.row(), y.row()) }
        objective.follow(plan(state.x.pool, state, pairs, direction), state.adjustedGradient)
      case _ => ()
    }
    direction
  }
}

/** The pairs of s and y, the last first. */
private[spark] final class GramHistory(
    limit: Int,
    steps: IndexedSeq[ServerVector] = IndexedSeq.empty,
    changes: IndexedSeq[ServerVector] = IndexedSeq.empty)
    extends LBFGS.ApproximateInverseHessian[ServerVector](limit, steps, changes) {

  def pairs: Seq[(ServerVector, ServerVector)] = steps.zip(changes)

  override def updated(step: ServerVector, change: ServerVector): LBFGS.ApproximateInverseHessian[ServerVector] =
    new GramHistory(limit, (step +: steps).take(limit), (change +: changes).take(limit))
}

/** An objective whose evaluations follow a plan. As in breeze, a second evaluation at the last point costs nothing. */
private[spark] final class GramObjective(f: DiffFunction[ServerVector])
    extends CachedDiffFunction[ServerVector](f)(ServerVectorSpace.serverVectorCopy) {
  private var plan: EvaluationPlan = GramObjective.NoPlan

  /** Sets the plan for the next evaluations, and asks for what the direction needs of the slope at their start. */
  def follow(next: GramPlan, slope: ServerVector): Unit = {
    next.begin(slope.row())
    plan = next
  }

  override def calculate(x: ServerVector): (Double, ServerVector) = x.pool.planned(plan) {
    val (value, gradient) = super.calculate(x)
    // An objective of the program may not have told the pool.
    x.pool.evaluated(x, gradient)
    (value, gradient)
  }
}

private object GramObjective {
  object NoPlan extends EvaluationPlan {
    override def evaluated(now: Evaluation): Unit = ()
  }
}

/**
 * Asks for the products that are needed after an evaluation which began at `before`.
 *
 * @param directions rows of the direction, if it is not a combination of the other vectors
 */
private[spark] class GramPlan(
    pool: VectorPool,
    before: Evaluation,
    pairs: Seq[(Row, Row)],
    directions: Seq[Row] = Seq.empty)
    extends EvaluationPlan {
  private var last: Option[Evaluation] = None
  /** Keeps the rows of the differences until the optimizer computes them. */
  private var step: Option[StepProducts] = None

  /** Asks for the products of the direction with the slope at the start of the line search. */
  def begin(slope: Row): Unit = pool.synchronized {
    if (directions.nonEmpty) pool.products.fetch(new ProductRequest(Seq.empty, Seq.empty, directions.map((_, slope))))
  }

  override def evaluated(now: Evaluation): Unit =
    if ((now.x ne before.x) && !last.exists(known => (known.x eq now.x) && (known.gradient eq now.gradient))) {
      val made = new StepProducts(pool, now, before, slopeOf(now))
      pool.products.fetch(made.request(pairs, furtherPairs(now), directions))
      made.derive(pool.products)
      last = Some(now)
      step = Some(made)
    }

  /** The gradient, or what stands in its place. */
  protected def slopeOf(now: Evaluation): Row = now.gradient

  /** Products of the objective. */
  protected def furtherPairs(now: Evaluation): Seq[(Row, Row)] =
    if (pool.products.isSquareUsed(before.x)) Seq((now.x, now.x)) else Seq.empty
}
