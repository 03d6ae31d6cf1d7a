package org.seraphim.spark

import scala.collection.mutable.ArrayBuffer

import breeze.linalg.DenseVector
import breeze.optimize.{DiffFunction, LBFGS, OWLQN}
import org.apache.spark.SparkContext
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}

import org.seraphim.client.TestServers

/** The optimizers with one request for inner products give what breeze gives in the driver, on a9a, with few waits. */
@Timeout(180)
class GramOptimizersTest {
  import BreezeOptimizersTest._
  import GramOptimizersTest._

  private var servers: TestServers = _
  private var context: SparkContext = _
  private var pool: VectorPool = _

  @BeforeEach def start(): Unit = {
    servers = TestServers.start()
    context = TestSpark.start("local[2]")
    pool = VectorPool.open(servers.address, SparseRecords.A9aDimension.toLong, capacity = RoomForAll)
  }

  @AfterEach def stop(): Unit = {
    if (pool != null) pool.close()
    if (context != null) context.stop()
    if (servers != null) servers.close()
  }

  private def objective(records: Vector[SparseRecord]): SparkObjective[SparseRecord] =
    new SparkObjective(context.parallelize(records, 2).cache(), pool, L2)(SparseRecords.logistic(records.size))

  /** Runs an optimizer, and returns its last state, and for each iteration its evaluations and waits. */
  private def run(
      optimizer: LBFGS[ServerVector],
      remote: SparkObjective[SparseRecord]): (Double, Seq[(Long, Long)]) = {
    val states = optimizer.iterations(remote, pool.zeros())
    var last = states.next()
    val counts = ArrayBuffer[(Long, Long)]()
    while (states.hasNext) {
      val before = (remote.evaluations, pool.waits)
      last = states.next()
      counts += ((remote.evaluations - before._1, pool.waits - before._2))
    }
    assertTrue(counts.size == Iterations && !last.searchFailed)
    (last.adjustedValue, counts.toSeq)
  }

  private def report(name: String, loss: Double, counts: Seq[(Long, Long)], evaluations: Long): Unit = println(
    s"$name: loss $loss, $evaluations evaluations, waits per iteration: " +
      s"${counts.map(_._2).sum.toDouble / counts.size}, at most ${counts.map(_._2).max}")

  /**
   * The first iterations start without a history, and ask for norms. Later ones wait once for the point of each
   * evaluation and once for its products.
   */
  private def assertFewWaits(counts: Seq[(Long, Long)], ofIteration: Long): Unit = {
    val later = counts.drop(2).filter(_._1 == 1).map(_._2)
    assertTrue(later.size > Iterations / 2 && later.sum <= (ofIteration + 2) * later.size, s"$counts")
    val sum = counts.map(_._2).sum
    assertTrue(sum <= MaxGramWaits * counts.size, s"$sum waits in ${counts.size} iterations: $counts")
  }

  @Test def lbfgs_gives_the_result_of_breeze_with_two_waits_for_each_evaluation(): Unit = {
    val records = SparseRecords.a9a()
    val local = new LocalObjective(records, L2)
    val inDriver = new LBFGS[DenseVector[Double]](Iterations, Memory)
    val expected = inDriver.minimizeAndReturnState(local, DenseVector.zeros[Double](SparseRecords.A9aDimension))
    val remote = objective(records)
    val (loss, counts) = run(new GramLBFGS(Iterations, Memory), remote)
    report("GramLBFGS", loss, counts, remote.evaluations)
    assertEquals(ReferenceLoss, loss, LossTolerance)
    assertEquals(expected.value, loss, LossTolerance)
    assertEquals(local.evaluations, remote.evaluations)
    assertFewWaits(counts, ofIteration = 0)
  }

  @Test def owlqn_gives_the_result_of_breeze_with_few_waits(): Unit = {
    val records = SparseRecords.a9a()
    val local = new LocalObjective(records, L2)
    val inDriver = new OWLQN[Int, DenseVector[Double]](Iterations, Memory, L1)
    val expected = inDriver.minimizeAndReturnState(local, DenseVector.zeros[Double](SparseRecords.A9aDimension))
    val remote = objective(records)
    val (loss, counts) = run(new GramOWLQN(Iterations, Memory, L1), remote)
    report("GramOWLQN", loss, counts, remote.evaluations)
    assertEquals(ReferenceL1Loss, loss, LossTolerance)
    assertEquals(expected.adjustedValue, loss, LossTolerance)
    assertEquals(local.evaluations, remote.evaluations)
    assertFewWaits(counts, ofIteration = 1)
  }

  @Test def owlqn_without_a_penalty_is_not_far_from_lbfgs(): Unit = {
    val records = SparseRecords.a9a().take(3000)
    val none = run(new GramOWLQN(Iterations, Memory, 0.0), objective(records))._1
    val lbfgs = run(new GramLBFGS(Iterations, Memory), objective(records))._1
    assertEquals(lbfgs, none, CloseLosses)
    assertThrows(classOf[IllegalArgumentException], () => new GramOWLQN(Iterations, Memory, -1.0): Unit)
  }

  /** An objective of a program that does not tell the pool what it has evaluated. The history is full. */
  @Test def an_objective_of_a_program_needs_no_more_waits_for_products(): Unit = {
    val dimension = SparseRecords.A9aDimension
    val curvature = pool.create(Array.tabulate(dimension)(i => 0.1 + (i % 17) / 16.0))
    val target = pool.fill(0.01)
    val quadratic = new DiffFunction[ServerVector] {
      override def calculate(w: ServerVector): (Double, ServerVector) = {
        val difference = w.minus(target)
        val gradient = difference.zip("mul", curvature)
        (0.5 * gradient.zip("mul", difference).reduce("sum"), gradient)
      }
    }
    val pairs = 3
    val before = pool.waits
    val optimizer = new GramLBFGS(20, pairs, 0.0)
    val last = optimizer.minimizeAndReturnState(quadratic, pool.zeros())
    assertTrue(last.iter > 2 * pairs, s"${last.iter} iterations")
    assertTrue((pool.waits - before) <= 5 * (last.iter + 3), s"${pool.waits - before} waits, ${last.iter} iterations")
    last.x.pull().foreach(value => assertEquals(0.01, value, 1e-6))
  }
}

object GramOptimizersTest {
  /** Room for all vectors of a run, about five per evaluation: a full pool would wait for a row, too. */
  val RoomForAll = 512
  /** Mean over the iterations, with all evaluations of their line searches. */
  val MaxGramWaits = 4.0
  /** Both are near to the same minimum, on different ways. */
  val CloseLosses = 1e-3
}
