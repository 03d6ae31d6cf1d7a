package org.seraphim.spark.ml

import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import org.apache.spark.ml.Pipeline
import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.ml.evaluation.BinaryClassificationEvaluator
import org.apache.spark.ml.feature.VectorAssembler
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.ml.tuning.{CrossValidator, ParamGridBuilder}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.{SparseRecords, TestSpark}

@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class EstimatorTest {
  private var session: SparkSession = _

  @BeforeAll
  def start(): Unit = {
    TestSpark.start("local[2]", "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString)
    session = SparkSession.builder().getOrCreate()
  }

  @AfterAll
  def stop(): Unit = session.stop()

  private def a9a(): DataFrame = {
    val records = SparseRecords.a9a().map { record =>
      (record.label, Vectors.sparse(SparseRecords.A9aDimension, record.columns, record.values))
    }
    session.createDataFrame(records).toDF("label", "features").repartition(3)
  }

  /** Points in a plane with the class of their side. */
  private def points(count: Int, seed: Int): DataFrame = {
    val random = new Random(seed)
    val rows = Seq.fill(count) {
      val (a, b) = (random.nextGaussian(), random.nextGaussian())
      (if (a + b > 0) 1.0 else 0.0, a, b, if (a > 0) "right" else "left", a - 2 * b)
    }
    session.createDataFrame(rows).toDF("label", "a", "b", "side", "height").repartition(2)
  }

  private def vectors(frame: DataFrame): DataFrame =
    new VectorAssembler().setInputCols(Array("a", "b")).setOutputCol("features").transform(frame)

  private def folders(): Set[Path] = {
    val list = Files.list(Paths.get(System.getProperty("java.io.tmpdir")))
    try list.toArray.map(_.asInstanceOf[Path]).filter(_.getFileName.toString.startsWith("seraphim-fit")).toSet
    finally list.close()
  }

  private def logLoss(scored: DataFrame): Double = scored.select("label", "probability").rdd.map { row =>
    -math.log(row.getAs[Vector](1)(row.getDouble(0).toInt))
  }.mean()

  @Test
  def logistic_regression_reaches_the_minimum_of_spark(): Unit = {
    val frame = a9a().cache()
    // The program penalizes the sum of the losses, Spark their mean; the constant is not penalized in both.
    val estimator = new SeraphimLogisticRegression().setRegParam(1e-4).setMaxIter(100)
    val model = estimator.setSettings(Array("standardize=false")).fit(frame)
    val scored = model.transform(frame)
    val ofSpark = new LogisticRegression().setRegParam(1e-4).setStandardization(false).setTol(1e-9).fit(frame)
    val expected = ofSpark.transform(frame)
    assertEquals(logLoss(expected), logLoss(scored), 1e-4)
    val area = new BinaryClassificationEvaluator()
    assertEquals(area.evaluate(expected), area.evaluate(scored), 1e-4)
    assertEquals("lr", model.algorithm)
    assertTrue(model.summary.contains("log_loss"), model.summary)
    assertEquals(scored.count(), frame.count())
    frame.unpersist()
  }

  @Test
  def the_quick_start_of_the_page_runs(): Unit = {
    val Array(training, test) = vectors(points(400, 8)).randomSplit(Array(0.8, 0.2), 1)
    val path = Files.createTempDirectory("seraphim-test").resolve("model").toString
    // The lines of docs/spark.md.
    import org.seraphim.spark.ml.SeraphimLogisticRegression
    val estimator = new SeraphimLogisticRegression().setFeaturesCol("features").setLabelCol("label")
    val model = estimator.fit(training)
    model.transform(test).select("prediction", "probability")
    model.write.save(path)
    assertTrue(model.transform(test).filter("prediction = label").count() > 0.9 * test.count())
  }

  @Test
  def the_model_directory_is_the_same_for_spark_and_the_program(): Unit = {
    val frame = vectors(points(500, 1))
    val model = new SeraphimEstimator().setPredictionCol("guess").fit(frame)
    val path = Files.createTempDirectory("seraphim-test").resolve("model")
    model.write.save(path.toString)
    val again = SeraphimModel.load(path.toString)
    assertArrayEquals(model.archive, again.archive)
    // Spark may ask an iterator for more after its end.
    val ends = model.transform(frame).rdd.mapPartitions { rows =>
      rows.foreach(_ => ())
      Iterator(rows.hasNext, rows.hasNext)
    }
    assertEquals(Set(false), ends.collect().toSet)
    assertEquals("guess", again.getPredictionCol)
    val rows = (model: SeraphimModel) => model.transform(frame).select("guess", "probability").collect().toSeq
    assertEquals(rows(model), rows(again))
    val inspect = new ProcessBuilder(TestServers.binaryOrSkip().toString, "inspect", path.toString).redirectErrorStream(true)
    assertEquals(0, inspect.start().waitFor())
    // A directory that the command line has written has no parameters of Spark.
    DirectoryArchive.remove(path.resolve("metadata"))
    assertEquals("prediction", SeraphimModel.load(path.toString).getPredictionCol)
  }

  @Test
  def a_training_is_the_same_whatever_the_order_of_its_blocks(): Unit = {
    val frame = vectors(points(2000, 2)).cache()
    val estimator = new SeraphimEstimator().setNumTasks(2).setSettings(Array("optimizer=adagrad", "epochs=3"))
    assertArrayEquals(weights(estimator.fit(frame)), weights(estimator.fit(frame)))
    frame.unpersist()
  }

  private def weights(model: SeraphimModel): Array[Byte] =
    DirectoryArchive.read(model.archive, "weights.safetensors").get

  @Test
  def other_algorithms_have_their_own_predictions(): Unit = {
    val frame = vectors(points(600, 3))
    val prediction = (algorithm: String, label: String, settings: Seq[String]) => {
      val estimator = new SeraphimEstimator().setAlgorithm(algorithm).setLabelCol(label).setSettings(settings.toArray)
      estimator.fit(frame).transform(frame)
    }
    for (algorithm <- Seq("svm", "softmax", "fm")) {
      val scored = prediction(algorithm, "label", Nil)
      assertTrue(scored.filter("prediction = label").count() > 540, algorithm)
    }
    val heights = prediction("linear", "height", Nil)
    assertTrue(heights.filter("abs(prediction - height) < 0.1").count() > 590)
    val clusters = prediction("kmeans", "label", Seq("k=3")).select("prediction").distinct().collect().map(_.getDouble(0))
    assertEquals(Set(0.0, 1.0, 2.0), clusters.toSet)
  }

  @Test
  def columns_of_numbers_and_strings_are_features_too(): Unit = {
    val frame = points(500, 4)
    val estimator = new SeraphimEstimator().setInputCols(Array("side", "b"))
    val scored = estimator.fit(frame).transform(frame)
    assertTrue(scored.filter("prediction = label").count() > 400)
    assertEquals(Seq("label", "a", "b", "side", "height", "rawPrediction", "probability", "prediction"),
      scored.columns.toSeq)
  }

  @Test
  def pipelines_and_cross_validation_take_it(): Unit = {
    val assembler = new VectorAssembler().setInputCols(Array("a", "b")).setOutputCol("features")
    val estimator = new SeraphimLogisticRegression().setMaxIter(20)
    val grid = new ParamGridBuilder().addGrid(estimator.regParam, Array(1e-3, 10.0)).build()
    val evaluator = new BinaryClassificationEvaluator()
    val pipeline = new Pipeline().setStages(Array(assembler, estimator))
    val folder = Files.createTempDirectory("seraphim-test")
    pipeline.write.save(folder.resolve("stages").toString)
    val stages = Pipeline.load(folder.resolve("stages").toString).getStages
    assertEquals(20, stages(1).asInstanceOf[SeraphimLogisticRegression].getMaxIter)
    val validator = new CrossValidator().setEstimator(pipeline).setEvaluator(evaluator).setEstimatorParamMaps(grid)
      .setNumFolds(2)
    val model = validator.fit(points(400, 5))
    assertTrue(model.avgMetrics.forall(_ > 0.95), model.avgMetrics.toSeq.toString)
    val path = folder.resolve("model").toString
    model.bestModel.asInstanceOf[org.apache.spark.ml.PipelineModel].write.save(path)
    val again = org.apache.spark.ml.PipelineModel.load(path)
    assertTrue(evaluator.evaluate(again.transform(points(400, 6))) > 0.95)
  }

  @Test
  def bad_input_is_an_error_that_says_what_to_do(): Unit = {
    val frame = vectors(points(50, 7))
    def refused(frame: DataFrame, part: String, estimator: SeraphimEstimator = new SeraphimEstimator()): Unit = {
      val fault = assertThrows(classOf[RuntimeException], () => { estimator.fit(frame); () })
      assertTrue(fault.getMessage.contains(part), fault.getMessage)
    }
    refused(frame.drop("label"), "there is no column 'label'; the columns are a, b, side, height, features")
    refused(frame.withColumnRenamed("features", "other"), "there is no column 'features'")
    refused(frame, "column 'a' has the type double, expected a vector", new SeraphimEstimator().setFeaturesCol("a"))
    refused(frame, "column 'side' has the type string, expected a number; StringIndexer",
      new SeraphimEstimator().setLabelCol("side"))
    refused(frame.selectExpr("features", "if(a > 0, null, 1.0) as label"), "column 'label' has a null")
    refused(frame.selectExpr("features", "if(a > 0, cast('NaN' as double), 1.0) as label"),
      "column 'label' has the value NaN, expected a finite number")
    refused(frame.selectExpr("label", "if(a > 0, null, features) as features"), "column 'features' has a null")
    val wide = new VectorAssembler().setInputCols(Array("a", "b", "a")).setOutputCol("features").transform(points(9, 1))
    refused(frame.unionByName(wide), "vectors of size 2 and of size 3")
    refused(frame.filter("a > 1000"), "the data have no records")
    refused(frame, "lr has no parameter \"lerning_rate\"; did you mean learning_rate?",
      new SeraphimEstimator().setSettings(Array("lerning_rate=1")))
    refused(frame, "column 'a' has two roles", new SeraphimEstimator().setInputCols(Array("a")).setLabelCol("a"))
    assertEquals(Set.empty, folders(), "a failed training leaves no folder")
  }
}
