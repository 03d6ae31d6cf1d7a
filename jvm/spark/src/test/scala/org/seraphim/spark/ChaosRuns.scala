package org.seraphim.spark

import java.nio.file.{Files, Path, Paths}

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.{ExecutorLostFailure, FetchFailed, Success, TaskContext, TaskKilled}

import org.seraphim.client.TestServers

/**
 * Computes the same sum many times on a standalone cluster, twice from each RDD, while attempts fail before and after
 * their commit, executors end, shuffled records are lost, and slow attempts are speculated. It compares each sum with
 * that of an undisturbed run, bit by bit.
 *
 * Arguments: number of runs, seed of the first.
 */
object ChaosRuns {
  private val Dimension = 2000
  private val Parts = 6
  private val Records = 600

  def main(arguments: Array[String]): Unit = {
    val (runs, seed) = (arguments(0).toInt, arguments(1).toLong)
    val servers = TestServers.start()
    val cluster = new TestCluster
    val context = cluster.start(
      "spark.speculation" -> "true",
      "spark.speculation.interval" -> "50ms",
      "spark.speculation.quantile" -> "0.3",
      "spark.speculation.multiplier" -> "1",
      "spark.speculation.minTaskRuntime" -> "50ms",
      "spark.task.maxFailures" -> "20",
      "spark.stage.maxConsecutiveAttempts" -> "20")
    val faults = new FaultCounts
    context.addSparkListener(faults)
    try {
      val pool = VectorPool.open(servers.address, Dimension.toLong, capacity = 32)
      val folder = Files.createTempDirectory("chaos")
      val records = context.parallelize(1 to Records, Parts).map(record => (record, record)).groupByKey(Parts).keys
      val calm = new SparkObjective(records, pool, isReproducible = true)(evaluate)
      val expected = calm.calculate(pool.fill(2.0))
      val bits = expected._2.pull().map(java.lang.Double.doubleToRawLongBits).toSeq
      var different = 0
      for (run <- 0 until runs) {
        val shuffled = context.parallelize(1 to Records, Parts).map(record => (record, record)).groupByKey(Parts).keys
        val prefix = folder.resolve(s"run-$run").toString
        val runSeed = seed + run
        val objective = new SparkObjective(shuffled, pool, isReproducible = true)(
          (records, w, gradient) => disturb(prefix, runSeed, records, w, gradient))
        // The second action finds some of the shuffled records that the first one has left.
        val isSame = (1 to 2).forall { _ =>
          val (loss, gradient) = objective.calculate(pool.fill(2.0))
          loss == expected._1 && gradient.pull().map(java.lang.Double.doubleToRawLongBits).toSeq == bits
        }
        if (!isSame) different += 1
        val marks = Files.list(folder).toArray.length
        println(s"run $run: ${if (isSame) "the same bits" else "DIFFERENT"}; $marks faults so far")
      }
      println(s"$runs runs, $different different; ${faults.text}")
      pool.close()
    } finally {
      context.stop()
      cluster.close()
      servers.close()
    }
  }

  /** What Spark says of its tasks, by kind. */
  private final class FaultCounts extends SparkListener {
    private val counts = mutable.TreeMap[String, Int]()

    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
      val kind = end.reason match {
        case Success => if (end.taskInfo.speculative) "speculative attempts that ended first" else "attempts that ended well"
        case _: FetchFailed => "fetch failures"
        case _: ExecutorLostFailure => "attempts of lost executors"
        case _: TaskKilled => "attempts that another one has overtaken"
        case _ => "failed attempts"
      }
      counts(kind) = counts.getOrElse(kind, 0) + 1
    }

    def text: String = synchronized(counts.map { case (kind, count) => s"$count $kind" }.mkString(", "))
  }

  private def evaluate(records: Iterator[Int], w: Array[Double], gradient: Array[Double]): Double = {
    var loss = 0.0
    for (record <- records.toArray.sorted) {
      loss += 0.1 * record * w(0)
      for (i <- gradient.indices) gradient(i) += 0.1 * record / (i + 1)
    }
    loss
  }

  /** Each partition has one fault of a kind that the seed chooses, in its first attempt that gets there. */
  private def disturb(
      prefix: String,
      seed: Long,
      records: Iterator[Int],
      w: Array[Double],
      gradient: Array[Double]): Double = {
    val task = TaskContext.get()
    val part = task.partitionId()
    val mark = Paths.get(s"$prefix-$part")
    val kind = new java.util.SplittableRandom(seed * 1000 + part).nextInt(8)
    if (!Files.exists(mark)) {
      kind match {
        case 0 =>
          set(mark)
          throw new IllegalStateException("fails before its commit")
        case 1 => task.addTaskCompletionListener[Unit] { _ =>
          set(mark)
          throw new IllegalStateException("fails after its commit")
        }
        case 2 if part < 2 => task.addTaskCompletionListener[Unit] { _ =>
          set(mark)
          Runtime.getRuntime.halt(1)
        }
        case 4 =>
          set(mark)
          loseShuffledRecords()
          throw new IllegalStateException("fails, and the next attempt cannot fetch its records")
        case 3 =>
          // A slow attempt, until a speculative one begins or some time has passed.
          val end = System.nanoTime() + 1000000000L
          if (task.attemptNumber() > 0) set(mark)
          while (!Files.exists(mark) && System.nanoTime() < end) Thread.onSpinWait()
        case _ => ()
      }
    }
    evaluate(records, w, gradient)
  }

  /** Removes what this executor has shuffled: who fetches it fails, and Spark runs the stage before again. */
  private def loseShuffledRecords(): Unit = for (folder <- sys.env.get("SPARK_EXECUTOR_DIRS")) {
    val files = Files.walk(Paths.get(folder))
    try {
      val shuffled = files.filter(file => file.getFileName.toString.startsWith("shuffle_"))
      shuffled.forEach(file => Files.deleteIfExists(file))
    } finally files.close()
  }

  private def set(mark: Path): Unit = Files.write(mark, Array.emptyByteArray)
}
