package org.seraphim.spark.ml

import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.ml.Pipeline
import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.ml.evaluation.BinaryClassificationEvaluator
import org.apache.spark.ml.feature.{Tokenizer, VectorAssembler}
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.ml.tuning.{CrossValidator, ParamGridBuilder}
import org.apache.spark.sql.functions.{array, col, exp, lit, rand, when}
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

  private def folders(prefix: String): Set[Path] = {
    val list = Files.list(Paths.get(System.getProperty("java.io.tmpdir")))
    try list.toArray.map(_.asInstanceOf[Path]).filter(_.getFileName.toString.startsWith(prefix)).toSet
    finally list.close()
  }

  /** The processes of the program that train for Spark. */
  private def trainings(): Seq[ProcessHandle] = {
    val all = ProcessHandle.current.descendants.toArray.map(_.asInstanceOf[ProcessHandle]).toSeq
    val program = TestServers.binaryOrSkip().toString
    // The program also checks settings, for a moment.
    def trains(process: ProcessHandle) = process.info.arguments.orElse(Array.empty[String]).contains("train")
    all.filter(process => process.info.command.orElse("") == program && trains(process) && process.isAlive)
  }

  private def logLoss(scored: DataFrame): Double = scored.select("label", "probability").rdd.map { row =>
    -math.log(row.getAs[Vector](1)(row.getDouble(0).toInt))
  }.mean()

  @Test
  def logistic_regression_reaches_the_minimum_of_spark(): Unit = {
    val frame = a9a().cache()
    // The program penalizes the sum of the losses, Spark their mean; the constant is not penalized in both.
    val estimator = new SeraphimLogisticRegression().setRegParam(1e-4).setMaxIter(100)
    val model = estimator.setStandardization(false).fit(frame)
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
  def coefficients_are_those_of_spark(): Unit = {
    val frame = vectors(points(500, 30)).cache()
    val ofSpark = new org.apache.spark.ml.regression.LinearRegression().setLabelCol("height").fit(frame)
    val linear = new SeraphimLinearRegression().setLabelCol("height").setRegParam(0).setMaxIter(200).fit(frame)
    assertArrayEquals(ofSpark.coefficients.toArray, linear.coefficients.toArray, 1e-3)
    assertEquals(ofSpark.intercept, linear.intercept, 1e-3)
    val model = new SeraphimLogisticRegression().setRegParam(0.01).setStandardization(false).fit(frame)
    val expected = new LogisticRegression().setRegParam(0.01).setStandardization(false).setTol(1e-9).fit(frame)
    assertArrayEquals(expected.coefficients.toArray, model.coefficients.toArray, 1e-3)
    assertEquals(expected.intercept, model.intercept, 1e-3)
    assertEquals((1, 2), (model.coefficientMatrix.numRows, model.coefficientMatrix.numCols))
    frame.unpersist()
  }

  @Test
  def models_without_a_vector_of_coefficients_say_why(): Unit = {
    val frame = points(200, 31)
    def reason(work: => Any): String = assertThrows(classOf[Exception], () => work).getMessage
    val factors = new SeraphimEstimator().setAlgorithm("fm").setInputCols(Array("a", "b")).fit(frame)
    assertTrue(reason(factors.coefficients).contains("is not linear"), reason(factors.coefficients))
    val strings = new SeraphimLogisticRegression().setInputCols(Array("a", "side")).fit(frame)
    assertTrue(reason(strings.coefficients).contains("seraphim export"), reason(strings.coefficients))
    val classes = new SeraphimSoftmaxRegression().setInputCols(Array("a", "b")).fit(frame)
    assertTrue(reason(classes.intercept).contains("interceptVector"), reason(classes.intercept))
    assertEquals((2, 2, 2),
      (classes.coefficientMatrix.numRows, classes.coefficientMatrix.numCols, classes.interceptVector.size))
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
    for (algorithm <- Seq("svm", "softmax", "fm", "gbdt")) {
      val scored = prediction(algorithm, "label", Nil)
      assertTrue(scored.filter("prediction = label").count() > 540, algorithm)
    }
    for (algorithm <- Seq("linear", "huber")) {
      val heights = prediction(algorithm, "height", Nil)
      assertTrue(heights.filter("abs(prediction - height) < 0.1").count() > 590, algorithm)
    }
    val trees = prediction("gbdt", "height", Seq("objective=squared", "min_records=5"))
    assertTrue(trees.filter("abs(prediction - height) < 0.5").count() > 540)
    val positive = vectors(points(600, 4)).withColumn("height", exp(col("height")))
    val counts = new SeraphimEstimator().setAlgorithm("gbdt").setLabelCol("height").setSettings(Array("objective=gamma"))
    // Its scores are logarithms, half of which are below 0.
    assertEquals(600, counts.fit(positive).transform(positive).filter("prediction > 0").count())
    val fields = new SeraphimEstimator().setAlgorithm("ffm").setInputCols(Array("side", "a", "b"))
    assertTrue(fields.fit(frame).transform(frame).filter("prediction = label").count() > 540)
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
  def words_of_a_tokenizer_are_features_too(): Unit = {
    val texts = Seq("good film", "a Good  cast", "bad film", "bad bad story", null, "")
    val rows = (0 until 300).map(i => (if (texts(i % 6) != null && texts(i % 6).contains("ood")) 1.0 else 0.0, texts(i % 6)))
    val frame = session.createDataFrame(rows).toDF("label", "text").repartition(2)
    val filled = frame.na.fill("nothing", Seq("text"))
    val tokenizer = new Tokenizer().setInputCol("text").setOutputCol("words")
    val estimator = new SeraphimLogisticRegression().setInputCols(Array("words"))
    val model = new Pipeline().setStages(Array(tokenizer, estimator)).fit(filled)
    val scored = model.transform(filled)
    assertEquals(300, scored.filter("prediction = label").count())
    // A null list has no words, and other types say what is expected.
    val words = tokenizer.transform(filled)
    val some = words.withColumn("words", when(col("text") === "nothing", lit(null)).otherwise(col("words")))
    assertEquals(300, estimator.fit(some).transform(some).filter("prediction = label").count())
    val numbers = words.withColumn("words", array(lit(1), lit(2)))
    val error = assertThrows(classOf[IllegalArgumentException], () => estimator.fit(numbers): Unit).getMessage
    assertTrue(error.contains("column 'words' has the type array<int>") && error.contains("an array of strings"), error)
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
    refused(frame, "regParam is a parameter of Spark's logistic", new SeraphimEstimator().setAlgorithm("kmeans").setRegParam(0.1))
    assertEquals((Set.empty, Nil), (folders("seraphim-fit"), trainings()), "a failed training leaves nothing")
  }

  @Test
  def weights_are_for_the_training_alone(): Unit = {
    val frame = vectors(points(600, 9)).selectExpr("features", "a", "label", "if(a > 0.5, 1 - label, label) as mixed",
      "if(a > 0.5, 0.0, 2.0) as w", "a <= 0.5 as isGood")
    for (weight <- Seq("w", "isGood")) {
      val model = new SeraphimLogisticRegression().setLabelCol("mixed").setWeightCol(weight).fit(frame)
      val scored = model.transform(frame.select("features", "label"))
      assertTrue(scored.filter("prediction = label").count() > 570, weight)
      assertEquals(600, model.transform(frame).count(), "the column may be there")
    }
  }

  @Test
  def records_of_the_validation_column_only_validate(): Unit = {
    val frame = vectors(points(600, 10)).selectExpr("features", "a > 0.5 as isValidation",
      "if(a > 0.5, 1 - label, label) as label")
    val model = new SeraphimLogisticRegression().setValidationIndicatorCol("isValidation").fit(frame)
    val report = new ObjectMapper().readTree(model.summary)
    assertEquals(frame.filter("not isValidation").count(), report.path("input").path("records").asLong)
    assertTrue(report.path("epochs").get(0).path("validation").path("auc").asDouble < 0.05, model.summary)
  }

  @Test
  def a_vector_of_another_size_is_refused_when_it_is_scored(): Unit = {
    val model = new SeraphimLogisticRegression().fit(vectors(points(100, 11)))
    assertEquals(2, model.numFeatures)
    val wide = new VectorAssembler().setInputCols(Array("a", "b", "a")).setOutputCol("features").transform(points(9, 1))
    val path = Files.createTempDirectory("seraphim-test").resolve("model").toString
    model.write.save(path)
    for (model <- Seq(model, SeraphimModel.load(path))) {
      val fault = assertThrows(classOf[Exception], () => { model.transform(wide).collect(); () })
      assertTrue(fault.getMessage.contains("has a vector of size 3, but the model was trained with size 2"),
        fault.getMessage)
    }
  }

  @Test
  def transformations_share_an_unpacked_model_and_few_are_kept(): Unit = {
    val frame = vectors(points(200, 12))
    val before = folders("seraphim-model")
    val models = (1 to 5).map(seed => new SeraphimEstimator().setSeed(seed).setSettings(Array("optimizer=sgd", "epochs=1"))
      .setNumTasks(1).fit(frame.orderBy(rand(seed))))
    for (model <- models; _ <- 1 to 3) model.transform(frame).count()
    models.foreach(model => model.transform(frame).select("prediction").collect())
    assertTrue((folders("seraphim-model") -- before).size <= 3, folders("seraphim-model").toString)
  }

  @Test
  def names_of_classes_become_their_numbers(): Unit = {
    val folder = Files.createTempDirectory("seraphim-test")
    val data = points(400, 13).select("a", "b", "side").collect().map(_.mkString(",").replace("left", "\"l, e\""))
    Files.write(folder.resolve("data.csv"), ("a,b,side" +: data).mkString("\n").getBytes)
    val command = Seq("train", "softmax", "--data", s"$folder/data.csv", "--label", "side", "--model", s"$folder/model")
    val train = new ProcessBuilder(TestServers.binaryOrSkip().toString +: command: _*).redirectErrorStream(true)
    assertEquals(0, train.redirectOutput(folder.resolve("log").toFile).start().waitFor())
    val model = SeraphimModel.load(s"$folder/model").setInputCols(Array("a", "b"))
    val scored = model.transform(points(400, 13))
    // The names are sorted: "l, e" is 0, "right" is 1.
    assertTrue(scored.filter("prediction = if(side = 'right', 1, 0)").count() > 390)
  }

  @Test
  def a_training_whose_process_is_killed_fails_and_leaves_nothing(): Unit = {
    val frame = vectors(points(2000, 14)).cache()
    val long = new SeraphimEstimator().setSettings(Array("optimizer=sgd", "epochs=1000000"))
    @volatile var fault: Option[Throwable] = None
    val thread = new Thread(() => fault = scala.util.Try(long.fit(frame)).failed.toOption)
    thread.start()
    val end = System.nanoTime() + 30000000000L
    while (trainings().isEmpty && System.nanoTime() < end) Thread.sleep(20)
    trainings().foreach(_.destroyForcibly())
    thread.join(30000)
    assertTrue(fault.exists(_.isInstanceOf[ProgramFailure]), fault.toString)
    assertEquals((Set.empty, Nil), (folders("seraphim-fit"), trainings()))
    frame.unpersist()
  }

  @Test
  def two_trainings_at_once_do_not_meet(): Unit = {
    val frame = vectors(points(1000, 15)).cache()
    val estimators = Seq(1.0, 0.001).map(reg => new SeraphimLogisticRegression().setRegParam(reg))
    val alone = estimators.map(estimator => weights(estimator.fit(frame)).toSeq)
    val both = new Array[Seq[Byte]](2)
    val threads = (0 to 1).map(i => new Thread(() => both(i) = weights(estimators(i).fit(frame)).toSeq))
    threads.foreach(_.start())
    threads.foreach(_.join())
    assertEquals(alone, both.toSeq)
    frame.unpersist()
  }
}
