package org.seraphim.spark.ml

import java.security.MessageDigest

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.{FileSystem, Path => HadoopPath}
import org.apache.spark.ml.Model
import org.apache.spark.ml.linalg.SQLDataTypes.VectorType
import org.apache.spark.ml.linalg.{Matrix, Vector}
import org.apache.spark.ml.param.{IntParam, ParamMap, ParamValidators}
import org.apache.spark.ml.util._
import org.apache.spark.sql.types.{DoubleType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}

import org.seraphim.spark.SeraphimConf

/**
 * A model that the program has trained.
 *
 * It has the model directory, which is the same as everywhere: `write.save(path)` writes its files to `path`, where the
 * commands of the program read them, and `load` also reads a directory that the command line has written.
 */
final class SeraphimModel private[ml] (override val uid: String, private[ml] val archive: Array[Byte], report: String)
    extends Model[SeraphimModel] with SeraphimParams with DefaultParamsWritable {

  /** For Spark, which makes a model before it sets its parameters. */
  def this(uid: String) = this(uid, Array.emptyByteArray, "")

  /** The size of the vectors of the training. Models of other columns and those of the command line do not have it. */
  final val numFeatures =
    new IntParam(this, "numFeatures", "size of the vectors of the training", ParamValidators.gtEq(0))

  def getNumFeatures: Int = $(numFeatures)

  private[ml] def withVectors(size: Option[Int]): SeraphimModel = {
    size.foreach(set(numFeatures, _))
    this
  }

  /** This model with other files. */
  private[ml] def withArchive(other: Array[Byte]): SeraphimModel = copyValues(new SeraphimModel(uid, other, ""))

  private lazy val digest: String =
    MessageDigest.getInstance("SHA-256").digest(archive).map(byte => f"${byte & 0xff}%02x").mkString

  private lazy val manifest: JsonNode = {
    val bytes = DirectoryArchive.read(archive, "model.json")
    new ObjectMapper().readTree(bytes.getOrElse(throw new IllegalStateException("the model has no file model.json")))
  }

  /** The algorithm that has trained it. */
  def algorithm: String = manifest.path("algorithm").asText

  /** The report of the training as JSON: metrics, timings, settings. Empty for a model that was read. */
  def summary: String = report

  private lazy val linear: LinearCoefficients = {
    val binary = SeraphimConf.of(SparkSession.active.sparkContext.getConf).binary
    val folder = UnpackedModels.acquire(digest, archive)
    val size = get(numFeatures).orElse(get(inputCols).map(_.length)).getOrElse(0)
    try LinearCoefficients.of(binary, folder, size) finally UnpackedModels.release(digest)
  }

  /** The coefficients of a linear model with one of them for each feature, for values as they are in the DataFrame. */
  def coefficients: Vector = linear.only._1

  def intercept: Double = linear.only._2

  /** The coefficients of a linear model: classes x features, with one row if there are no classes. */
  def coefficientMatrix: Matrix = linear.matrix

  def interceptVector: Vector = linear.intercepts

  private def output: OutputKind = {
    val model = manifest.path("model")
    model.path("loss").path("kind").asText match {
      case "logistic" => ProbabilityOutput
      case "hinge" | "squared_hinge" => MarginOutput
      case "softmax" =>
        val classes = model.path("classes")
        ClassesOutput((0 until classes.size).map(classes.get(_).asDouble))
      case _ => ValueOutput
    }
  }

  override def transformSchema(schema: StructType): StructType = {
    featureColumns(schema)
    val vector = (name: String) => StructField(name, VectorType)
    val prediction = StructField($(predictionCol), DoubleType, nullable = false)
    val added = output match {
      case ProbabilityOutput => Seq(vector($(rawPredictionCol)), vector($(probabilityCol)), prediction)
      case MarginOutput => Seq(vector($(rawPredictionCol)), prediction)
      case ClassesOutput(_) => Seq(vector($(probabilityCol)), prediction)
      case ValueOutput => Seq(prediction)
    }
    added.find(field => schema.fieldNames.contains(field.name)).foreach { field =>
      throw new IllegalArgumentException(
        s"there is a column '${field.name}' already; name another one for the prediction")
    }
    StructType(schema.fields ++ added)
  }

  override def transform(dataset: Dataset[_]): DataFrame = {
    val schema = transformSchema(dataset.schema)
    val context = dataset.sparkSession.sparkContext
    val records = RecordSchema(featureColumns(dataset.schema), None)
    val binary = SeraphimConf.of(context.getConf).binary
    val scoring =
      new Scoring(binary, context.broadcast(archive), digest, records, get(numFeatures), output, $(threshold))
    val rows = dataset.toDF().rdd.mapPartitions(rows => scoring(rows))
    dataset.sparkSession.createDataFrame(rows, schema)
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
