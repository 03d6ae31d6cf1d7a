package org.seraphim.spark.ml

import scala.util.Random

import org.apache.spark.ml.classification.{LogisticRegression, OneVsRest}
import org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.regression.LinearRegression
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertFalse, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.TestSpark

/** What has a name of Spark ML means what it means there. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class AsInSparkTest {
  private var session: SparkSession = _

  @BeforeAll
  def start(): Unit = {
    TestSpark.start("local[2]", "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString)
    session = SparkSession.builder().getOrCreate()
  }

  @AfterAll
  def stop(): Unit = session.stop()

  /** Columns of very different scale, a class that depends on all of them, three classes, and a value. */
  private lazy val scales: DataFrame = {
    val random = new Random(1)
    val rows = Seq.fill(400) {
      val (a, b, c) = (random.nextGaussian(), random.nextDouble(), random.nextGaussian())
      val score = a + 3 * (b - 0.5) + 1.5 * c + 0.5 * random.nextGaussian()
      (if (score > 0) 1.0 else 0.0, if (score > 1) 2.0 else if (score > -1) 1.0 else 0.0, 40 + 7 * score,
        Vectors.dense(50000 + 20000 * a, b, 0.001 * c))
    }
    session.createDataFrame(rows).toDF("label", "kind", "height", "features").repartition(2).cache()
  }

  private def assertClose(expected: Vector, actual: Vector): Unit =
    expected.toArray.zip(actual.toArray).foreach { case (one, other) =>
      assertEquals(1.0, other / one, 2e-3, s"$expected and $actual")
    }

  @Test
  def penalties_are_those_of_spark(): Unit =
    for (elasticNet <- Seq(0.0, 0.5)) {
      val ofSpark = new LogisticRegression().setRegParam(0.02).setElasticNetParam(elasticNet).setTol(1e-10)
        .setMaxIter(500).fit(scales)
      val estimator = new SeraphimLogisticRegression().setRegParam(0.02).setElasticNetParam(elasticNet)
        .setMaxIter(500).setSettings(Array("tolerance=1e-10"))
      assertClose(ofSpark.coefficients, estimator.fit(scales).coefficients)
      val linear = new LinearRegression().setLabelCol("height").setRegParam(0.3).setElasticNetParam(elasticNet)
        .setTol(1e-10).setMaxIter(500).fit(scales)
      val model = new SeraphimLinearRegression().setLabelCol("height").setRegParam(0.3).setElasticNetParam(elasticNet)
        .setMaxIter(500).setSettings(Array("tolerance=1e-10"))
      assertClose(linear.coefficients, model.fit(scales).coefficients)
    }

  @Test
  def a_penalty_of_several_classes_is_that_of_spark(): Unit = {
    val ofSpark = new LogisticRegression().setLabelCol("kind").setRegParam(0.05).setTol(1e-10).setMaxIter(500).fit(scales)
    val model = new SeraphimSoftmaxRegression().setLabelCol("kind").setRegParam(0.05).setMaxIter(500)
      .setSettings(Array("tolerance=1e-10")).fit(scales)
    val difference = ofSpark.coefficientMatrix.toArray.zip(model.coefficientMatrix.toArray)
    difference.foreach { case (one, other) => assertEquals(1.0, other / one, 5e-3, model.coefficientMatrix.toString) }
    assertEquals(3, model.numClasses)
    val record = scales.select("features").head().getAs[Vector](0)
    assertArrayEquals(ofSpark.predictProbability(record).toArray, model.predictProbability(record).toArray, 1e-2)
    assertEquals(ofSpark.predict(record), model.predict(record))
  }

  @Test
  def predictions_are_in_the_labels_of_the_training(): Unit = {
    val frame = scales.selectExpr("2 * label - 1 as label", "features")
    for (algorithm <- Seq("lr", "svm", "fm")) {
      val scored = new SeraphimEstimator().setAlgorithm(algorithm).fit(frame).transform(frame)
      assertEquals(Set(-1.0, 1.0), scored.select("prediction").distinct().collect().map(_.getDouble(0)).toSet)
      assertTrue(scored.filter("prediction = label").count() > 340, algorithm)
    }
    val named = scales.selectExpr("3 - label as label", "features")
    val model = new SeraphimEstimator().setSettings(Array("positive_label=2")).fit(named)
    val scored = model.transform(named)
    assertTrue(scored.filter("prediction = label").count() > 340)
    assertEquals(Set(2.0, 3.0), scored.select("prediction").distinct().collect().map(_.getDouble(0)).toSet)
  }

  @Test
  def labels_with_gaps_are_positions_of_the_probabilities(): Unit = {
    val frame = scales.selectExpr("5 * kind as label", "features")
    val scored = new SeraphimSoftmaxRegression().fit(frame).transform(frame)
    val evaluator = new MulticlassClassificationEvaluator()
    assertTrue(evaluator.setMetricName("logLoss").evaluate(scored) < 0.7)
    assertTrue(evaluator.setMetricName("accuracy").evaluate(scored) > 0.8)
    assertEquals(11, scored.head().getAs[Vector]("probability").size)
  }

  @Test
  def raw_predictions_are_the_margins(): Unit = {
    val rows = (0 to 100).map(i => (if (i > 50) 1.0 else 0.0, Vectors.dense((i - 50) * 40.0)))
    val frame = session.createDataFrame(rows).toDF("label", "features").coalesce(1)
    val raw = new SeraphimLogisticRegression().setRegParam(0.0).setMaxIter(50).fit(frame).transform(frame)
      .select("rawPrediction").collect().map(_.getAs[Vector](0)(1))
    assertEquals(101, raw.distinct.length)
    assertFalse(raw.exists(_.isInfinite))
    assertEquals(raw.sorted.toSeq, raw.toSeq)
  }

  @Test
  def thresholds_decide_the_prediction(): Unit = {
    val svm = new SeraphimEstimator().setAlgorithm("svm").fit(scales)
    val count = (model: SeraphimModel) => model.transform(scales).filter("prediction = 1").count()
    val counts = Seq(-1000.0, 0.0, 1.0, 1000.0).map(threshold => count(svm.copy(ParamMap.empty).setThreshold(threshold)))
    assertEquals((400L, 0L), (counts.head, counts.last))
    assertTrue(counts(1) > counts(2), counts.toString)
    val lr = new SeraphimLogisticRegression().fit(scales)
    val other = lr.copy(ParamMap.empty).setThresholds(Array(0.2, 0.8))
    assertEquals(count(lr.setThreshold(0.8)), count(other))
    val fault = assertThrows(classOf[IllegalArgumentException], () => { lr.setThreshold(2).transform(scales); () })
    assertTrue(fault.getMessage.contains("threshold is 2.0, expected a probability"), fault.getMessage)
  }

  @Test
  def an_empty_name_leaves_a_column_out(): Unit = {
    val model = new SeraphimLogisticRegression().setProbabilityCol("").setRawPredictionCol("").fit(scales)
    assertEquals(scales.columns.toSeq :+ "prediction", model.transform(scales).columns.toSeq)
    assertEquals(400, model.transform(scales).filter("prediction >= 0").count())
  }

  @Test
  def one_versus_rest_takes_it(): Unit = {
    val frame = scales.selectExpr("kind as label", "features")
    for (estimator <- Seq(new SeraphimLogisticRegression(), new SeraphimEstimator().setAlgorithm("svm"))) {
      val scored = new OneVsRest().setClassifier(estimator).fit(frame).transform(frame)
      assertTrue(scored.filter("prediction = label").count() > 200)
    }
  }

  @Test
  def a_stream_is_scored(): Unit = {
    val folder = java.nio.file.Files.createTempDirectory("seraphim-test").resolve("rows").toString
    scales.write.parquet(folder)
    val model = new SeraphimLogisticRegression().fit(scales)
    val stream = model.transform(session.readStream.schema(scales.schema).parquet(folder))
    val query = stream.writeStream.format("memory").queryName("scores").start()
    query.processAllAvailable()
    query.stop()
    assertEquals(400, session.table("scores").filter("prediction >= 0").count())
  }
}
