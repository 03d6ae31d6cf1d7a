package org.seraphim.spark

import breeze.linalg.DenseVector
import breeze.optimize.{DiffFunction, LBFGS, OWLQN}
import org.apache.spark.SparkContext
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}

import org.seraphim.client.TestServers
import org.seraphim.spark.ServerVectorSpace._

/** The optimizers of breeze give on servers what they give in the driver, on a9a. */
@Timeout(180)
class BreezeOptimizersTest {
  import BreezeOptimizersTest._

  private var servers: TestServers = _
  private var context: SparkContext = _
  private var pool: VectorPool = _

  @BeforeEach def start(): Unit = {
    servers = TestServers.start()
    context = TestSpark.start("local[2]")
    pool = VectorPool.open(servers.address, SparseRecords.A9aDimension.toLong)
  }

  @AfterEach def stop(): Unit = {
    if (pool != null) pool.close()
    if (context != null) context.stop()
    if (servers != null) servers.close()
  }

  private def objective(records: Vector[SparseRecord], l2: Double): SparkObjective[SparseRecord] = {
    val count = records.size
    new SparkObjective(context.parallelize(records, 2).cache(), pool, l2)(SparseRecords.logistic(count))
  }

  @Test def lbfgs_needs_the_same_evaluations_and_few_waits(): Unit = {
    val records = SparseRecords.a9a()
    val local = new LocalObjective(records, L2)
    val inDriver = new LBFGS[DenseVector[Double]](Iterations, Memory)
    val expected = inDriver.minimizeAndReturnState(local, DenseVector.zeros[Double](SparseRecords.A9aDimension))
    val remote = objective(records, L2)
    val waits = scala.collection.mutable.ArrayBuffer[Long]()
    val onServers = new LBFGS[ServerVector](Iterations, Memory)
    val states = onServers.iterations(remote, pool.zeros())
    var last = states.next()
    while (states.hasNext) {
      val before = pool.waits
      last = states.next()
      waits += pool.waits - before
    }
    println(s"LBFGS: loss ${last.value} (DenseVector ${expected.value}), ${remote.evaluations} evaluations " +
      s"(${local.evaluations}), waits per iteration: ${waits.sum.toDouble / waits.size}, at most ${waits.max}")
    assertEquals(ReferenceLoss, last.value, LossTolerance)
    assertEquals(expected.value, last.value, LossTolerance)
    assertEquals(local.evaluations, remote.evaluations)
    assertTrue(waits.sum <= MaxWaits * waits.size, s"waits per iteration: $waits")
  }

  @Test def owlqn_needs_the_same_evaluations_and_few_waits(): Unit = {
    val records = SparseRecords.a9a()
    val local = new LocalObjective(records, L2)
    val inDriver = new OWLQN[Int, DenseVector[Double]](Iterations, Memory, L1)
    val expected = inDriver.minimizeAndReturnState(local, DenseVector.zeros[Double](SparseRecords.A9aDimension))
    val remote = objective(records, L2)
    val before = pool.waits
    val onServers = new OWLQN[Int, ServerVector](Iterations, Memory, L1)
    val last = onServers.minimizeAndReturnState(remote, pool.zeros())
    println(s"OWLQN: loss ${last.adjustedValue} (DenseVector ${expected.adjustedValue}), ${remote.evaluations} " +
      s"evaluations (${local.evaluations}), waits per iteration: ${(pool.waits - before).toDouble / last.iter}")
    assertEquals(expected.adjustedValue, last.adjustedValue, LossTolerance)
    assertEquals(ReferenceL1Loss, last.adjustedValue, LossTolerance)
    assertEquals(local.evaluations, remote.evaluations)
    assertTrue(pool.waits - before <= MaxL1Waits * last.iter, s"${pool.waits - before} waits")
  }

  @Test def owlqn_takes_a_penalty_for_each_column(): Unit = {
    val records = SparseRecords.a9a().take(3000)
    val penalty = (column: Int) => if (column % 10 == 3) 0.0 else L1 * (1 + column % 4)
    val inDriver = new OWLQN[Int, DenseVector[Double]](ShortRun, Memory, penalty)
    val local = new LocalObjective(records, L2)
    val expected = inDriver.minimizeAndReturnState(local, DenseVector.zeros[Double](SparseRecords.A9aDimension))
    val onServers = new OWLQN[Int, ServerVector](ShortRun, Memory, penalty)
    val actual = onServers.minimizeAndReturnState(objective(records, L2), pool.zeros())
    assertEquals(expected.adjustedValue, actual.adjustedValue, LossTolerance)
    val zeros = expected.x.data.map(_ == 0.0)
    assertArrayEquals(zeros, actual.x.pull().map(_ == 0.0))
    assertTrue(zeros.contains(true) && zeros.contains(false))
  }

  @Test def closures_of_a_program_run_in_the_driver(): Unit = {
    val x = pool.create(Array.tabulate(SparseRecords.A9aDimension)(_.toDouble))
    assertEquals(4.0, space.mapValues.map(x, (value: Double) => value * value)(2))
    assertEquals(5.0, space.zipMapValues.map(x, x, (a: Double, b: Double) => a * b + 1)(2))
    assertEquals(6.0, space.zipMapKeyValues.map(x, x, (i: Int, a: Double, b: Double) => i + a + b)(2))
    // Two results of closures are equal if their values are.
    assertTrue(space.mapValues.map(x, (value: Double) => value + 0) == x)
    assertTrue(space.mapValues.map(x, (value: Double) => value + 1) != x)
  }
}

object BreezeOptimizersTest {
  val ShortRun = 12
  val Iterations = 40
  val Memory = 10
  val L2 = 1e-4
  val L1 = 1e-3
  /** What breeze gives with vectors in the driver. */
  val ReferenceLoss = 0.3245593
  val ReferenceL1Loss = 0.3486694
  val LossTolerance = 1e-6
  /** Means over the iterations. */
  val MaxWaits = 4.0
  val MaxL1Waits = 8.0

  /** The same objective in the driver. */
  final class LocalObjective(records: Vector[SparseRecord], l2: Double) extends DiffFunction[DenseVector[Double]] {
    var evaluations = 0L

    override def calculate(w: DenseVector[Double]): (Double, DenseVector[Double]) = {
      evaluations += 1
      val gradient = new Array[Double](w.length)
      val loss = SparseRecords.logistic(records.size)(records.iterator, w.data, gradient)
      (loss + 0.5 * l2 * w.dot(w), DenseVector(gradient) + w * l2)
    }
  }
}
