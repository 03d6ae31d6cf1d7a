package org.seraphim.spark.ml

import java.security.MessageDigest

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.{FileSystem, Path => HadoopPath}
import org.apache.spark.ml.attribute.AttributeGroup
import org.apache.spark.ml.classification.ProbabilisticClassificationModel
import org.apache.spark.ml.linalg.SQLDataTypes.VectorType
import org.apache.spark.ml.linalg.{Matrix, Vector}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util._
import org.apache.spark.sql.types.{DoubleType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row, SparkSession}

import org.seraphim.spark.SeraphimConf

/**
 * A model that the program has trained.
 *
 * It has the model directory, which is the same as everywhere: `write.save(path)` writes its files to `path`, where the
 * commands of the program read them, and `load` also reads a directory that the command line has written. It is a
 * classification model for Spark; models that predict values or clusters have no classes.
 */
final class SeraphimModel private[ml] (override val uid: String, private[ml] val archive: Array[Byte], report: String)
    extends ProbabilisticClassificationModel[Vector, SeraphimModel] with SeraphimParams with DefaultParamsWritable {

  /** For Spark, which makes a model before it sets its parameters. */
  def this(uid: String) = this(uid, Array.emptyByteArray, "")

  override def setFeaturesCol(name: String): this.type = set(featuresCol, name)
  override def setPredictionCol(name: String): this.type = set(predictionCol, name)
  override def setProbabilityCol(name: String): this.type = set(probabilityCol, name)
  override def setRawPredictionCol(name: String): this.type = set(rawPredictionCol, name)

  /** This model with other files. */
  private[ml] def withArchive(other: Array[Byte]): SeraphimModel = copyValues(new SeraphimModel(uid, other, ""))

  private lazy val digest: String =
    MessageDigest.getInstance("SHA-256").digest(archive).map(byte => f"${byte & 0xff}%02x").mkString

  private lazy val facts: ModelFacts = ModelFacts.of(archive)

  private lazy val manifest: JsonNode = {
    val bytes = DirectoryArchive.read(archive, "model.json")
    new ObjectMapper().readTree(bytes.getOrElse(throw new IllegalStateException("the model has no file model.json")))
  }

  /** The algorithm that has trained it. */
  def algorithm: String = manifest.path("algorithm").asText

  /** The report of the training as JSON: metrics, timings, settings. Empty for a model that was read. */
  def summary: String = report

  /** The size of the vectors of the training; -1 for models of other columns, and for those of the command line. */
  override def numFeatures: Int = facts.size.getOrElse(-1)

  private lazy val linear: LinearCoefficients = {
    val binary = SeraphimConf.of(SparkSession.active.sparkContext.getConf).binary
    val folder = UnpackedModels.acquire(digest, archive)
    try LinearCoefficients.of(binary, folder, facts, get(inputCols).fold(0)(_.length))
    finally UnpackedModels.release(digest)
  }

  /** The coefficients of a linear model with one of them for each feature, for values as they are in the DataFrame. */
  def coefficients: Vector = linear.only._1

  def intercept: Double = linear.only._2

  /** The coefficients of a linear model: classes x features, with one row if there are no classes. */
  def coefficientMatrix: Matrix = linear.matrix

  def interceptVector: Vector = linear.intercepts

  private lazy val output: OutputKind = {
    val model = manifest.path("model")
    // Trees name their loss after what they are trained for.
    val loss = if (model.has("loss")) model.path("loss") else model.path("objective")
    loss.path("kind").asText match {
      case "logistic" => twoClasses(model, hasProbability = true)
      case "hinge" | "squared_hinge" => twoClasses(model, hasProbability = false)
      case "softmax" =>
        val classes = model.path("classes")
        ClassesOutput((0 until classes.size).map(classes.get(_).asDouble))
      case "poisson" | "gamma" | "tweedie" => ValueOutput(isLogarithm = true)
      case _ => ValueOutput(isLogarithm = false)
    }
  }

  /** The labels of the training: 0 and 1, -1 and 1, or those that `positive_label` separates. */
  private def twoClasses(model: JsonNode, hasProbability: Boolean): OutputKind = {
    val named = Option(model.get("positive_label")).filterNot(_.isNull).map(_.asDouble)
    val (negative, positive) = named match {
      case None => (if (facts.labels.contains(-1.0)) -1.0 else 0.0, 1.0)
      case Some(positive) =>
        val others = facts.labels.filter(_ != positive)
        (if (others.size == 1) others.head else if (positive == 0) 1.0 else 0.0, positive)
    }
    TwoClassOutput(hasProbability, negative, positive)
  }

  private def classes: ClassOutput = output match {
    case classes: ClassOutput => classes
    case _: ValueOutput => throw new UnsupportedOperationException(s"a model of $algorithm has no classes")
  }

  override def numClasses: Int = classes.numClasses

  /** Predicts one record. It starts the program for it: use `transform` for many. */
  override def predict(features: Vector): Double = output match {
    case value: ValueOutput => value.predict(scoresOf(features)(0))
    case classes: ClassOutput => classes.predict(predictRaw(features), get(threshold), get(thresholds))
  }

  override def predictRaw(features: Vector): Vector = classes.raw(scoresOf(features))

  override protected def raw2probabilityInPlace(raw: Vector): Vector = {
    if (!classes.hasProbability) throw new UnsupportedOperationException(s"a model of $algorithm has no probabilities")
    classes.toProbability(raw.toDense)
  }

  private def scoresOf(features: Vector): Array[Double] = {
    val schema = new StructType().add($(featuresCol), VectorType)
    val binary = SeraphimConf.of(SparkSession.active.sparkContext.getConf).binary
    val files = archive
    new Scoring(binary, () => files, digest, records(schema), facts.size, outputColumns).scoresOf(Row(features))
  }

  private def outputColumns: OutputColumns = {
    val hasProbability = output match {
      case classes: ClassOutput => classes.hasProbability
      case _: ValueOutput => false
    }
    if (hasProbability && get(threshold).exists(value => !(value >= 0 && value <= 1))) {
      throw new IllegalArgumentException(s"threshold is ${$(threshold)}, expected a probability from 0 to 1")
    }
    if (get(thresholds).nonEmpty) {
      if (!hasProbability) throw new IllegalArgumentException(s"thresholds need probabilities, which $algorithm has not")
      if ($(thresholds).length != numClasses) {
        throw new IllegalArgumentException(s"thresholds has ${$(thresholds).length} values, expected one for each of $numClasses classes")
      }
    }
    OutputColumns(output, hasRaw = !output.isInstanceOf[ValueOutput] && $(rawPredictionCol).nonEmpty,
      hasProbability && $(probabilityCol).nonEmpty, $(predictionCol).nonEmpty, get(threshold), get(thresholds))
  }

  override def transformSchema(schema: StructType): StructType = {
    featureColumns(schema)
    val columns = outputColumns
    val vector = (name: String) => new AttributeGroup(name, numClasses).toStructField()
    val added = (if (columns.hasRaw) Seq(vector($(rawPredictionCol))) else Nil) ++
      (if (columns.hasProbability) Seq(vector($(probabilityCol))) else Nil) ++
      (if (columns.hasPrediction) Seq(StructField($(predictionCol), DoubleType, nullable = false)) else Nil)
    added.find(field => schema.fieldNames.contains(field.name)).foreach { field =>
      throw new IllegalArgumentException(
        s"there is a column '${field.name}' already; name another one for the prediction")
    }
    StructType(schema.fields ++ added)
  }

  private def records(schema: StructType): RecordSchema = {
    val records = RecordSchema(featureColumns(schema), None)
    facts.slots.fold(records)(records.withSlots)
  }

  override def transform(dataset: Dataset[_]): DataFrame = {
    val schema = transformSchema(dataset.schema)
    val context = dataset.sparkSession.sparkContext
    val binary = SeraphimConf.of(context.getConf).binary
    val files = context.broadcast(archive)
    val scoring =
      new Scoring(binary, () => files.value, digest, records(dataset.schema), facts.size, outputColumns)
    val score = (rows: Iterator[Row]) => scoring(rows)
    // Not through an RDD, which a stream does not have.
    dataset.toDF().mapPartitions(score)(Encoders.row(schema))
  }

  override def copy(extra: ParamMap): SeraphimModel =
    copyValues(new SeraphimModel(uid, archive, report), extra).setParent(parent)

  override def write: MLWriter = new SeraphimModelWriter(super.write, archive)
}

object SeraphimModel extends MLReadable[SeraphimModel] {
  private val params = new DefaultParamsReadable[SeraphimModel] {}

  override def read: MLReader[SeraphimModel] = new MLReader[SeraphimModel] {
    override def load(path: String): SeraphimModel = {
      val folder = new HadoopPath(path)
      val files = folder.getFileSystem(sparkSession.sparkContext.hadoopConfiguration)
      // The command line writes no parameters of Spark.
      val empty =
        if (files.exists(new HadoopPath(folder, "metadata"))) params.load(path)
        else new SeraphimModel(Identifiable.randomUID("seraphim"))
      empty.withArchive(ModelFolder.read(files, folder))
    }
  }

  override def load(path: String): SeraphimModel = super.load(path)
}

/** Writes the parameters as Spark does, and beside them the files of the model. */
private final class SeraphimModelWriter(params: MLWriter, archive: Array[Byte]) extends MLWriter {
  override protected def saveImpl(path: String): Unit = {
    params.session(sparkSession).save(path)
    val folder = new HadoopPath(path)
    val files = folder.getFileSystem(sparkSession.sparkContext.hadoopConfiguration)
    ModelFolder.write(files, folder, archive)
  }
}

/** A model directory on a file system of Hadoop. */
private object ModelFolder {
  def write(files: FileSystem, folder: HadoopPath, archive: Array[Byte]): Unit =
    DirectoryArchive.foreach(archive) { (name, content) =>
      val out = files.create(new HadoopPath(folder, name))
      try out.write(content) finally out.close()
    }

  def read(files: FileSystem, folder: HadoopPath): Array[Byte] = {
    val found = files.listStatus(folder).filter(_.isFile).filterNot(_.getPath.getName.startsWith("."))
    val contents = found.sortBy(_.getPath.getName).map { status =>
      val in = files.open(status.getPath)
      val content = new Array[Byte](status.getLen.toInt)
      try in.readFully(content) finally in.close()
      (status.getPath.getName, content)
    }
    if (!contents.exists(_._1 == "model.json")) {
      throw new IllegalArgumentException(s"$folder has no file model.json: it is no model directory of Seraphim")
    }
    DirectoryArchive.pack(contents.toSeq)
  }
}
