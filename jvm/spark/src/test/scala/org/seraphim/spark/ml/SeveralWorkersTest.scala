package org.seraphim.spark.ml

import java.nio.file.{Files, Paths}

import scala.util.Random

import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.{SparseRecords, TestSpark}
import org.seraphim.spark.Waiting.waitUntil

/** Trainings on several executors, in local mode. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SeveralWorkersTest {
  private var session: SparkSession = _
  /** Temporary folders of this session, and of no other program. */
  private val folders = Files.createTempDirectory(Paths.get("target").toAbsolutePath, "several-workers")

  @BeforeAll
  def start(): Unit = {
    TestSpark.start(
      "local[3]",
      "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString,
      "spark.local.dir" -> folders.toString)
    session = SparkSession.builder().getOrCreate()
  }

  @AfterAll
  def stop(): Unit = session.stop()

  /** Points in a plane with the class of their side. Every tenth one validates. */
  private def points(count: Int): DataFrame = {
    val random = new Random(1)
    val rows = (0 until count).map { n =>
      val (a, b) = (random.nextGaussian(), random.nextGaussian())
      (if (a + b > 0) 1.0 else 0.0, Vectors.dense(a, b), n % 10 == 0)
    }
    session.createDataFrame(rows).toDF("label", "features", "validates").repartition(3)
  }

  private def rightShare(model: SeraphimModel, frame: DataFrame): Double =
    model.transform(frame).filter("prediction = label").count().toDouble / frame.count()

  private def estimator(workers: Int): SeraphimLogisticRegression =
    new SeraphimLogisticRegression().setNumWorkers(workers)

  private def left(): Seq[String] = {
    val program = TestServers.binaryOrSkip().toString
    val processes = ProcessHandle.current.descendants.toArray.map(_.asInstanceOf[ProcessHandle]).toSeq
      .filter(process => process.info.command.orElse("") == program && process.isAlive).map(_.info.toString)
    processes ++ folders.toFile.list.filter(_.startsWith("seraphim-fit"))
  }

  @Test
  def the_minimum_is_that_of_one_worker(): Unit = {
    val records = SparseRecords.a9a().map { record =>
      (record.label, Vectors.sparse(SparseRecords.A9aDimension, record.columns, record.values))
    }
    val frame = session.createDataFrame(records).toDF("label", "features").repartition(5).cache()
    val before = left()
    val losses = for (workers <- Seq(1, 2, 3)) yield {
      val model = estimator(workers).setRegParam(1e-4).setMaxIter(100).fit(frame)
      val report = new com.fasterxml.jackson.databind.ObjectMapper().readTree(model.summary)
      assertEquals(SparseRecords.A9aDimension, model.numFeatures)
      val epochs = report.path("epochs")
      epochs.get(epochs.size - 1).path("training").path("log_loss").asDouble
    }
    assertTrue(losses.head > 0.3 && losses.head < 0.34, losses.toString)
    losses.foreach(loss => assertEquals(losses.head, loss, 1e-5))
    assertEquals(before, left())
    frame.unpersist()
  }

  @Test
  def the_same_partitions_give_the_same_bytes(): Unit = {
    val frame = points(1000).cache()
    val models = Seq.fill(3)(estimator(3).setSettings(Array("epochs=3", "optimizer=adagrad")).fit(frame).archive)
    models.tail.foreach(model => assertArrayEquals(models.head, model))
    frame.unpersist()
  }

  @Test
  def records_that_validate_are_divided_too(): Unit = {
    val frame = points(600)
    val model = estimator(2).setValidationIndicatorCol("validates").fit(frame)
    assertTrue(model.summary.contains("\"validation\": {"), model.summary)
    assertTrue(rightShare(model, frame) > 0.95)
    // One record validates, so that two of the workers have none.
    val one = estimator(3).setValidationIndicatorCol("validates").fit(points(10))
    assertTrue(one.summary.contains("\"validation\": {"), one.summary)
  }

  @Test
  def columns_of_numbers_and_strings_train_too(): Unit = {
    import org.apache.spark.sql.functions.{col, when}
    val frame = session.range(500).toDF("id").withColumn("x", col("id") % 7)
      .withColumn("town", when(col("id") % 3 === 0, "north").otherwise("south"))
      .withColumn("label", when(col("town") === "north", 1.0).otherwise(0.0)).repartition(2)
    val model = new SeraphimEstimator().setInputCols(Array("x", "town")).setNumWorkers(2).fit(frame)
    assertEquals(1.0, rightShare(model, frame))
  }

  @Test
  def a_cancelled_training_ends(): Unit = for (workers <- Seq(1, 2)) {
    val before = left()
    val endless = Array("optimizer=adagrad", "epochs=100000")
    val context = session.sparkContext
    var outcome: scala.util.Try[SeraphimModel] = null
    val training = new Thread(() => {
      context.setJobGroup("training", "a training without end")
      outcome = scala.util.Try(estimator(workers).setSettings(endless).fit(points(1000)))
    })
    training.start()
    // With two workers: a master, two servers and two workers.
    waitUntil("the program runs", left())(outcome != null || left().size > before.size + (if (workers == 1) 1 else 6))
    context.cancelJobGroup("training")
    training.join(30000)
    assertTrue(outcome != null && outcome.isFailure, s"$outcome")
    waitUntil("nothing is left", left())(left() == before)
  }

  @Test
  def a_failure_is_told_with_the_reason_and_leaves_nothing(): Unit = {
    val before = left()
    def reason(work: => Any): String = assertThrows(classOf[Exception], () => work).getMessage
    val unknown = reason(estimator(2).setSettings(Array("lerning_rate=1")).fit(points(100)))
    assertTrue(unknown.contains("did you mean learning_rate"), unknown)
    val tasks = reason(estimator(2).setNumTasks(3).fit(points(100)))
    assertTrue(tasks.contains("3 tasks cannot be divided equally among 2 workers"), tasks)
    val few = reason(estimator(3).fit(points(2)))
    assertTrue(few.contains("numWorkers is 3, and there are only 2 records"), few)
    val slots = reason(estimator(4).fit(points(100)))
    assertTrue(slots.contains("numWorkers is 4, and this session runs at most 3 tasks at once"), slots)
    assertEquals(before, left())
  }
}
