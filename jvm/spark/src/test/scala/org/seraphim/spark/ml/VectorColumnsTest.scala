package org.seraphim.spark.ml

import java.nio.file.Files
import java.time.{Duration, Instant, LocalDate}

import scala.util.Random

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.ml.Pipeline
import org.apache.spark.ml.evaluation.BinaryClassificationEvaluator
import org.apache.spark.ml.feature.{OneHotEncoder, StringIndexer, VectorAssembler}
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertEquals, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.TestSpark

/** Vectors are read as what their slots are, and errors and notices name columns and slots. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class VectorColumnsTest {
  private var session: SparkSession = _

  @BeforeAll
  def start(): Unit = {
    TestSpark.start("local[2]", "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString)
    session = SparkSession.builder().getOrCreate()
  }

  @AfterAll
  def stop(): Unit = session.stop()

  /** Numbers of very different scale beside a town, assembled as in most pipelines. */
  private lazy val assembled: DataFrame = {
    val random = new Random(1)
    val rows = Seq.fill(1000) {
      val (income, age, town) = (random.nextGaussian(), random.nextGaussian(), random.nextInt(4))
      val score = income + age + (if (town == 2) 2 else 0) + random.nextGaussian()
      (if (score > 0) 1.0 else 0.0, 1e5 + 2e4 * income, 40 + 10 * age, s"town $town")
    }
    val frame = session.createDataFrame(rows).toDF("label", "income", "age", "town")
    val index = new StringIndexer().setInputCol("town").setOutputCol("index")
    val oneHot = new OneHotEncoder().setInputCol("index").setOutputCol("towns").setDropLast(false)
    val all = new VectorAssembler().setInputCols(Array("towns", "income", "age")).setOutputCol("features")
    new Pipeline().setStages(Array(index, oneHot, all)).fit(frame).transform(frame).repartition(2).cache()
  }

  private val area = new BinaryClassificationEvaluator()

  private def reason(work: => Any): String = assertThrows(classOf[Exception], () => work).getMessage

  private def notices(model: SeraphimModel): String =
    new ObjectMapper().readTree(model.summary).path("notices").toString

  private def frame(rows: (Double, Vector)*): DataFrame =
    session.createDataFrame(rows).toDF("label", "features").coalesce(1)

  @Test
  def a_vector_is_as_good_as_its_columns(): Unit =
    for (algorithm <- Seq("lr", "svm", "fm", "softmax"); settings <- Seq(Nil, Seq("optimizer=ftrl"))
         if settings.isEmpty || algorithm == "lr") {
      val estimator = new SeraphimEstimator().setAlgorithm(algorithm).setSettings(settings.toArray)
      val score = (model: SeraphimModel) => {
        val scored = model.transform(assembled)
        if (algorithm == "softmax") scored.filter("prediction = label").count() / 1000.0 else area.evaluate(scored)
      }
      val columns = estimator.copy(ParamMap.empty).setInputCols(Array("income", "age", "town"))
      val ofColumns = score(columns.fit(assembled))
      val ofVector = estimator.fit(assembled)
      assertTrue(score(ofVector) > ofColumns - 0.003, s"$algorithm: ${score(ofVector)} and $ofColumns")
      assertTrue(score(ofVector) > 0.75, s"$algorithm: ${score(ofVector)}")
    }

  @Test
  def coefficients_are_those_of_the_slots(): Unit = {
    val model = new SeraphimLogisticRegression().fit(assembled)
    assertEquals(6, model.numFeatures)
    val path = Files.createTempDirectory("seraphim-test").resolve("model").toString
    model.write.save(path)
    for (model <- Seq(model, SeraphimModel.load(path).setFeaturesCol("renamed"))) {
      val weights = model.coefficients
      assertEquals(6, weights.size)
      val row = assembled.head().getAs[Vector]("features")
      val margin = model.intercept + row.toArray.zip(weights.toArray).map { case (x, w) => x * w }.sum
      assertEquals(margin, model.predictRaw(row)(1), 1e-3)
      val scored = model.transform(assembled.withColumnRenamed("features", model.getFeaturesCol))
      assertTrue(area.evaluate(scored) > 0.8)
    }
  }

  @Test
  def a_vector_may_come_without_its_metadata(): Unit = {
    val model = new SeraphimLogisticRegression().fit(assembled)
    val bare = session.createDataFrame(assembled.select("label", "features").rdd, frame().schema)
    assertEquals(area.evaluate(model.transform(assembled)), area.evaluate(model.transform(bare)), 1e-9)
  }

  @Test
  def coefficients_of_very_many_columns_are_sparse(): Unit = {
    val rows = (0 until 100).map(i => (i % 2.0, Vectors.sparse(Int.MaxValue, Array(i % 2, 2000000000), Array(1.0, 1.0))))
    val model = new SeraphimLogisticRegression().fit(frame(rows: _*))
    assertEquals((Int.MaxValue, 3), (model.coefficients.size, model.coefficients.numActives))
    assertTrue(model.coefficients(1) > 0 && model.coefficients(0) < 0)
  }

  @Test
  def values_that_cannot_be_are_errors_that_name_column_and_slot(): Unit = {
    val rows = (0 until 20).map(n => (n % 2.0, Vectors.dense(n % 2 + 0.01 * n, 1.0)))
    val of = (label: Double, value: Double) => frame(rows :+ ((label, Vectors.dense(1.0, value))): _*)
    val fit = (frame: DataFrame) => reason(new SeraphimLogisticRegression().fit(frame))
    for (value <- Seq(Double.NaN, Double.PositiveInfinity, 1e300)) {
      val text = fit(of(1, value))
      assertTrue(text.contains(s"column 'features' has the value $value in slot 1"), text)
    }
    assertTrue(fit(of(3, 1)).contains("column 'label' has the value 3.0, expected a label of two classes"), fit(of(3, 1)))
    assertTrue(fit(frame((-1.0, Vectors.dense(1)), (0.0, Vectors.dense(2)), (1.0, Vectors.dense(3))))
      .contains("column 'label' has the labels -1.0, 0.0, 1.0, expected two classes"))
    val weighted = of(1, 1).withColumn("w", col("label") - 0.5)
    val text = reason(new SeraphimLogisticRegression().setWeightCol("w").fit(weighted))
    assertTrue(text.contains("column 'w' has the value -0.5, expected a number of 0 or more"), text)
    val model = new SeraphimLogisticRegression().fit(frame(rows: _*))
    val scoring = reason(model.transform(frame((1.0, Vectors.dense(Double.NaN, 1.0)))).collect())
    assertTrue(scoring.contains("column 'features' has the value NaN in slot 0"), scoring)
    val twice = frame(rows: _*).select(col("label"), col("label"), col("features"))
    assertTrue(fit(twice).contains("2 columns have the name 'label'"), fit(twice))
  }

  @Test
  def notices_name_columns(): Unit = {
    val rows = (0 until 100).map(i => (i % 2.0, Vectors.dense(1764200000.0 + (i * 37 % 100) / 7.0)))
    val text = notices(new SeraphimLogisticRegression().fit(frame(rows: _*)))
    assertTrue(text.contains("learned nothing") || text.contains("column 'features_0'"), text)
    assertTrue(!text.contains("seraphim-fit"), text)
  }

  @Test
  def wrong_settings_are_told_before_a_job(): Unit = {
    @volatile var jobs = 0
    session.sparkContext.addSparkListener(new org.apache.spark.scheduler.SparkListener {
      override def onJobStart(start: org.apache.spark.scheduler.SparkListenerJobStart): Unit = jobs += 1
    })
    val rows = frame((0.0, Vectors.dense(1)), (1.0, Vectors.dense(2)))
    val fit = (estimator: SeraphimEstimator) => reason(estimator.fit(rows))
    val unknown = fit(new SeraphimEstimator().setAlgorithm("forest"))
    assertTrue(unknown.contains("unknown algorithm \"forest\""), unknown)
    val setting = fit(new SeraphimEstimator().setSettings(Array("learningrate=1")))
    assertTrue(setting.contains("did you mean learning_rate?"), setting)
    assertTrue(fit(new SeraphimEstimator().setMaxIter(0)).contains("maxIter is 0, expected 1 or more"))
    val svm = fit(new SeraphimEstimator().setAlgorithm("svm").setRegParam(0.1))
    assertTrue(svm.contains("regParam is a parameter of Spark's logistic, softmax and linear regression"), svm)
    assertEquals(0, jobs)
    new SeraphimEstimator().setSeed(-3).fit(rows)
  }

  @Test
  def datesTimesAndDurationsAreTheirSeconds(): Unit = {
    val (day, second) = (86400.0, 1764200000L)
    val numbers = (0 until 200).map { i =>
      (i % 2.0, (20000 + i % 7) * day, second + i * 37 % 500 + i % 2 * 300, i * 53 % 90.0, BigDecimal(i % 5) / 4, i % 3 == 0)
    }
    val times = numbers.map { case (label, date, time, length, price, open) =>
      (label, LocalDate.ofEpochDay((date / day).toLong), Instant.ofEpochSecond(time.toLong),
        Duration.ofSeconds(length.toLong), price, open)
    }
    val names = Seq("label", "day", "at", "length", "price", "open")
    val of = Seq(
      session.createDataFrame(numbers).toDF(names: _*), session.createDataFrame(times).toDF(names: _*),
    ).map { frame =>
      val table = frame.coalesce(1)
      val model = new SeraphimEstimator().setAlgorithm("lr").setInputCols(names.tail.toArray).fit(table)
      model.transform(table).select("probability").collect().map(_.getAs[Vector](0)(1)).toSeq
    }
    assertEquals(of.head, of.last)
    assertTrue(of.head.distinct.size > 100, of.head.take(6).toString)
  }
}
