package org.seraphim.spark

import java.nio.file.{Files, Path, Paths}

import org.apache.spark.{SparkContext, TaskContext}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}

import org.seraphim.client.{SeraphimException, TestServers}

/** Every partition counts once, whatever Spark runs again. Sums of these whole numbers are exact in any order. */
@Timeout(120)
class SparkObjectiveTest {
  import SparkObjectiveTest._

  private var servers: TestServers = _
  private var pool: VectorPool = _
  private var context: SparkContext = _
  private var cluster: TestCluster = _

  @BeforeEach def start(): Unit = {
    servers = TestServers.start()
    pool = VectorPool.open(servers.address, Dimension.toLong, capacity = 16)
  }

  @AfterEach def stop(): Unit = {
    if (context != null) context.stop()
    if (cluster != null) cluster.close()
    if (pool != null) pool.close()
    if (servers != null) servers.close()
  }

  private def check(objective: SparkObjective[Int]): Unit = {
    val w = pool.fill(2.0)
    val (loss, gradient) = objective.calculate(w)
    assertEquals((1 to Records).map(_ * 2.0).sum, loss)
    val expected = Array.tabulate(Dimension)(i => (1 to Records).map(r => r.toDouble * (i % 7)).sum)
    assertArrayEquals(expected, gradient.pull())
  }

  @Test def two_actions_in_one_process_give_the_same(): Unit = {
    context = TestSpark.start("local[2]")
    val objective = new SparkObjective(context.parallelize(1 to Records, Parts), pool)(evaluate)
    check(objective)
    check(objective)
  }

  @Test def a_task_that_fails_after_its_commit_counts_once(): Unit = {
    context = TestSpark.start("local[2,4]")
    check(new SparkObjective(context.parallelize(1 to Records, Parts), pool)(failingAfterCommit))
  }

  @Test def a_job_that_fails_leaves_the_pool_usable(): Unit = {
    context = TestSpark.start("local[2]")
    val broken = new SparkObjective(context.parallelize(1 to Records, Parts), pool)(
      (_, _, _) => throw new IllegalArgumentException("no loss"))
    assertThrows(classOf[org.apache.spark.SparkException], () => broken.calculate(pool.zeros()))
    check(new SparkObjective(context.parallelize(1 to Records, Parts), pool)(evaluate))
  }

  @Test def a_reproducible_objective_has_the_same_bits_in_each_run(): Unit = {
    context = TestSpark.start("local[2]")
    val objective = new SparkObjective(context.parallelize(1 to Records, Parts), pool, isReproducible = true)(inexact)
    val gradients = Seq.fill(5)(objective.calculate(pool.zeros())._2.pull())
    gradients.foreach(gradient => assertArrayEquals(gradients.head, gradient))
  }

  @Test def too_little_memory_for_the_parts_of_sums_is_told_before_the_first_evaluation(): Unit = {
    context = TestSpark.start("local[2]")
    val small = TestServers.start("--memory-limit", "64MiB")
    try {
      // 52 MB for the vectors, and 8 MB for each part with the numbers of its columns.
      val tight = VectorPool.open(small.address, 500000L, capacity = 13)
      val records = context.parallelize(1 to 4, 4)
      def objective(partitions: Int): SparkObjective[Int] =
        new SparkObjective(records.coalesce(partitions), tight)((part, _, gradient) => { gradient(0) += part.sum; 0.0 })
      for (_ <- 0 until 2) {
        val text = assertThrows(classOf[NoRoomException], () => objective(4): Unit).getMessage
        val ofMatrix = assertThrows(classOf[NoRoomException], () => ServerMatrix.sum(records.coalesce(1), tight, 2)(
          (part, sums) => sums.foreach(_(0) += part.sum)): Unit).getMessage
        assertTrue(ofMatrix.contains("13 vectors and 2 parts of sums at once"), ofMatrix)
        assertTrue(text.contains("13 vectors and 2 parts of sums") && text.contains("need 68000000 bytes"), text)
        assertTrue(text.contains("spark.seraphim.memory") && text.contains("the limit is"), text)
      }
      val (_, gradient) = objective(1).calculate(tight.zeros())
      assertEquals(10.0, gradient(0))
      tight.close()
    } finally small.close()
  }

  @Test def a_reproducible_objective_needs_a_vector_for_each_partition(): Unit = {
    context = TestSpark.start("local[2]")
    val records = context.parallelize(1 to Records, 16)
    val fault = assertThrows(classOf[IllegalArgumentException],
      () => new SparkObjective(records, pool, isReproducible = true)(evaluate): Unit)
    assertTrue(fault.getMessage.contains("each of the 16 partitions, and the pool has 16"), fault.getMessage)
  }

  @Test def speculation_lost_executors_and_fetch_failures_change_nothing(@TempDir folder: Path): Unit = {
    cluster = new TestCluster
    context = cluster.start(
      "spark.speculation" -> "true",
      "spark.speculation.interval" -> "50ms",
      "spark.speculation.quantile" -> "0.5",
      "spark.speculation.multiplier" -> "1",
      "spark.speculation.minTaskRuntime" -> "50ms",
      "spark.task.maxFailures" -> "8")
    val records = context.parallelize(1 to Records, Parts)
    check(new SparkObjective(records, pool)(evaluate))
    check(new SparkObjective(records, pool)(slowFirstAttempt(folder.resolve("speculated").toString)))
    // The records of a shuffle are lost with the executor that wrote them, so that earlier stages run again.
    val shuffled = records.map(record => (record, record)).groupByKey(Parts).keys
    check(new SparkObjective(shuffled, pool)(haltingAfterCommit(folder.resolve("halted").toString)))
    assertTrue(Files.exists(folder.resolve("speculated")) && Files.exists(folder.resolve("halted")))
  }

  @Test def a_server_that_is_killed_ends_the_job_with_one_clear_error(): Unit = {
    context = TestSpark.start("local[2]")
    val objective = new SparkObjective(context.parallelize(1 to Records, Parts), pool)(evaluate)
    check(objective)
    servers.killOneServer()
    val fault = assertThrows(classOf[Exception], () => while (true) objective.calculate(pool.fill(1.0)))
    val causes = Iterator.iterate[Throwable](fault)(_.getCause).takeWhile(_ != null).toSeq
    assertTrue(causes.exists(_.isInstanceOf[SeraphimException]) || fault.getMessage.contains("server"), fault.toString)
    pool = null
  }
}

object SparkObjectiveTest {
  private val Dimension = 1000
  private val Records = 200
  private val Parts = 5
  private val Deadline = java.time.Duration.ofSeconds(60)

  private type Evaluate = (Iterator[Int], Array[Double], Array[Double]) => Double

  private val evaluate: Evaluate = (records, w, gradient) => {
    var loss = 0.0
    for (record <- records) {
      loss += record * w(0)
      for (i <- gradient.indices) gradient(i) += record.toDouble * (i % 7)
    }
    loss
  }

  private val inexact: Evaluate = (records, _, gradient) => {
    for (record <- records; i <- gradient.indices) gradient(i) += 0.1 * record / (i + 1)
    0.0
  }

  /** The first attempt at each partition fails when it has committed. */
  private val failingAfterCommit: Evaluate = (records, w, gradient) => {
    val task = TaskContext.get()
    if (task.attemptNumber() == 0) {
      task.addTaskCompletionListener[Unit](_ => throw new IllegalStateException("fails after its commit"))
    }
    evaluate(records, w, gradient)
  }

  /** The first attempt at partition 1 waits until a speculative attempt has begun. */
  private def slowFirstAttempt(file: String): Evaluate = (records, w, gradient) => {
    val (task, mark) = (TaskContext.get(), Paths.get(file))
    if (task.partitionId() == 1) {
      val end = System.nanoTime() + Deadline.toNanos
      if (task.attemptNumber() > 0) Files.write(mark, Array.emptyByteArray)
      while (!Files.exists(mark) && System.nanoTime() < end) Thread.onSpinWait()
    }
    evaluate(records, w, gradient)
  }

  /** The first executor that commits partition 2 ends at once. */
  private def haltingAfterCommit(file: String): Evaluate = (records, w, gradient) => {
    val (task, mark) = (TaskContext.get(), Paths.get(file))
    if (task.partitionId() == 2 && !Files.exists(mark)) {
      task.addTaskCompletionListener[Unit] { _ =>
        Files.write(mark, Array.emptyByteArray)
        Runtime.getRuntime.halt(1)
      }
    }
    evaluate(records, w, gradient)
  }
}
