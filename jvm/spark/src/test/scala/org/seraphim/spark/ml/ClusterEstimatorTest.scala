package org.seraphim.spark.ml

import scala.util.{Random, Try}

import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, AfterEach, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.TestCluster

/** Estimators on a standalone cluster of Spark, whose executors are processes with addresses of their own. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClusterEstimatorTest {
  private val cluster = new TestCluster
  private var session: SparkSession = _

  private def start(settings: (String, String)*): Unit = {
    cluster.start(settings :+ "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString: _*)
    session = SparkSession.builder().getOrCreate()
  }

  @AfterEach
  def stop(): Unit = if (session != null) session.stop()

  @AfterAll
  def stopCluster(): Unit = cluster.close()

  private def points(count: Int): DataFrame = {
    val random = new Random(1)
    val rows = Seq.fill(count) {
      val (a, b) = (random.nextGaussian(), random.nextGaussian())
      (if (a + b > 0) 1.0 else 0.0, Vectors.dense(a, b))
    }
    // Spark keeps no order of rows in a shuffle between machines, so there is none.
    session.createDataFrame(session.sparkContext.parallelize(rows, 4)).toDF("label", "features")
  }

  private def worker(number: Int): Option[ProcessHandle] = {
    val all = ProcessHandle.current.descendants.toArray.map(_.asInstanceOf[ProcessHandle])
    val program = TestServers.binaryOrSkip().toString
    all.find { process =>
      process.info.command.orElse("") == program && process.info.arguments.map[Boolean](words =>
        words.contains(f"worker-$number%05d")).orElse(false)
    }
  }

  @Test
  def a_training_on_two_executors_survives_the_loss_of_one_with_the_same_bytes(): Unit = {
    start()
    val frame = points(1000)
    val estimator = new SeraphimLogisticRegression().setNumWorkers(2)
      .setSettings(Array("optimizer=adagrad", "epochs=1500", "batch_size=100"))
    val expected = estimator.fit(frame)
    assertTrue(expected.transform(frame).filter("prediction = label").count() > 950)

    var outcome: Try[SeraphimModel] = null
    val training = new Thread(() => outcome = Try(estimator.fit(frame)))
    training.start()
    val end = System.nanoTime() + 60000000000L
    while (worker(1).isEmpty) {
      assertTrue(System.nanoTime() < end && outcome == null, s"no worker; $outcome")
      Thread.sleep(20)
    }
    // The worker's parent is a shell, whose parent is the executor.
    val executor = worker(1).get.parent.get.parent.get
    Thread.sleep(500)
    assertTrue(outcome == null, "the training has ended before the executor was killed")
    executor.destroyForcibly()
    training.join(120000)
    assertTrue(outcome != null, "the training has not ended")
    assertArrayEquals(expected.archive, outcome.get.archive)
  }

  @Test
  def executors_without_the_jars_are_a_clear_error(): Unit = {
    val classes = System.getProperty("java.class.path").split(':').filterNot(_.contains("/jvm/")).mkString(":")
    start("spark.executor.extraClassPath" -> classes, "spark.task.maxFailures" -> "1")
    val frame = points(10)
    val fault = assertThrows(classOf[ProgramFailure], () => new SeraphimLogisticRegression().fit(frame))
    assertTrue(fault.getMessage.contains("--jars"), fault.getMessage)
  }
}
