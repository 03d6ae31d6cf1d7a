package org.seraphim.spark.ml

import org.apache.spark.ml.param._
import org.apache.spark.ml.param.shared._
import org.apache.spark.sql.types.StructType

/** The parameters that estimators and models of Seraphim share. */
trait SeraphimParams
    extends Params with HasFeaturesCol with HasInputCols with HasPredictionCol with HasProbabilityCol
    with HasRawPredictionCol with HasThresholds {

  /** Two classes: the second one is predicted above it. */
  final val threshold = new DoubleParam(this, "threshold",
    "the second of two classes is predicted above it: a probability, or for svm the raw prediction [default: 0.5, svm 0]")

  /** Numbers, booleans and strings as features, instead of a vector. */
  def setInputCols(names: Array[String]): this.type = set(inputCols, names)
  def setThreshold(value: Double): this.type = set(threshold, value)

  def getThreshold: Double = $(threshold)

  private[ml] def featureColumns(schema: StructType): Seq[RecordColumn] =
    RecordSchema.ofFeatures(schema, $(featuresCol), get(inputCols).map(_.toSeq))
}

/** The parameters of a training. */
trait SeraphimTrainingParams
    extends SeraphimParams with HasLabelCol with HasWeightCol with HasValidationIndicatorCol with HasSeed
    with HasRegParam with HasElasticNetParam with HasMaxIter with HasStandardization {

  /** One of `lr`, `svm`, `linear`, `huber`, `softmax`, `fm`, `ffm`, `kmeans`. */
  final val algorithm: Param[String] =
    new Param(this, "algorithm", "the algorithm, as `seraphim algorithms` lists them", (name: String) => name.nonEmpty)

  /** Parameters of the algorithm as `name=value`; `seraphim algorithms NAME` lists them. */
  final val settings = new StringArrayParam(this, "settings", "parameters of the algorithm as name=value",
    (all: Array[String]) => all.forall(_.indexOf('=') > 0))
  /** Number of tasks: part of the job, another number gives another model. */
  final val numTasks =
    new IntParam(this, "numTasks", "number of tasks [default: from the size of the data]", ParamValidators.gt(0))

  /** Number of executors that train together: part of the job, as the number of tasks is. */
  final val numWorkers =
    new IntParam(this, "numWorkers", "number of executors that train together", ParamValidators.gt(0))

  setDefault(settings -> Array.empty[String], seed -> 1L, numWorkers -> 1, algorithm -> "lr", elasticNetParam -> 0.0)

  def setAlgorithm(name: String): this.type = set(algorithm, name)
  def setRegParam(value: Double): this.type = set(regParam, value)
  def setElasticNetParam(value: Double): this.type = set(elasticNetParam, value)
  def setMaxIter(value: Int): this.type = set(maxIter, value)
  def setStandardization(value: Boolean): this.type = set(standardization, value)
  def setWeightCol(name: String): this.type = set(weightCol, name)
  /** A column of booleans: true for records that only validate. */
  def setValidationIndicatorCol(name: String): this.type = set(validationIndicatorCol, name)
  def setSeed(value: Long): this.type = set(seed, value)
  def setSettings(values: Array[String]): this.type = set(settings, values)
  def setNumTasks(count: Int): this.type = set(numTasks, count)
  def setNumWorkers(count: Int): this.type = set(numWorkers, count)
  def getAlgorithm: String = $(algorithm)
  def getNumWorkers: Int = $(numWorkers)
  def getSettings: Array[String] = $(settings)
  def getNumTasks: Int = $(numTasks)

  private[ml] def recordSchema(schema: StructType): RecordSchema = {
    val label = AlgorithmRules.labels($(algorithm), $(settings).toSeq)
      .map(rule => RecordSchema.number(schema, $(labelCol), rule))
    val columns =
      featureColumns(schema) ++ label ++ get(weightCol).map(name => RecordSchema.number(schema, name, Weight))
    columns.groupBy(_.name).find(_._2.size > 1).foreach { case (name, _) =>
      throw new IllegalArgumentException(
        s"column '$name' has two roles; a column is either a feature, the label or the weight")
    }
    RecordSchema(columns, get(validationIndicatorCol).map(name => RecordSchema.flag(schema, name)))
  }

  /** The objective of Spark ML, as soon as one of its parameters is set; the others then have Spark's defaults. */
  private[ml] def objective: Option[SparkObjectiveRule] = {
    val ofSpark = Seq(regParam, elasticNetParam, maxIter, standardization).filter(param => isSet(param)).map(_.name)
    if (ofSpark.isEmpty) None
    else {
      if (!AlgorithmRules.OfSpark.contains($(algorithm))) {
        val (names, verb) = (ofSpark.mkString(" and "), if (ofSpark.size > 1) "are parameters" else "is a parameter")
        throw new ProgramFailure(
          s"$names $verb of Spark's logistic, softmax and linear regression (lr, softmax, linear), and ${$(algorithm)} has " +
            "another objective; setSettings takes its own parameters, such as l2")
      }
      if (get(maxIter).contains(0)) throw new ProgramFailure("maxIter is 0, expected 1 or more")
      Some(SparkObjectiveRule(get(regParam).getOrElse(0.0), $(elasticNetParam), get(maxIter).getOrElse(100),
        $(standardization), $(algorithm) == "linear"))
    }
  }
}

/** What the Estimators know of the algorithms. */
private[ml] object AlgorithmRules {
  /** Those with the objective of an Estimator of Spark ML. */
  val OfSpark: Set[String] = Set("lr", "softmax", "linear")
  private val TwoClassAlgorithms = Set("lr", "svm", "fm", "ffm")

  /** Those whose columns can be standardized. */
  val Standardizing: Set[String] = Set("lr", "svm", "linear", "huber", "softmax", "fm")

  /** The labels that an algorithm takes; none if it learns without. An unknown algorithm is refused by the program. */
  def labels(algorithm: String, settings: Seq[String]): Option[ValueRule] = {
    val hasTwoClasses = TwoClassAlgorithms(algorithm) && !settings.contains("loss=squared")
    algorithm match {
      case "kmeans" => None
      case "softmax" => Some(Classes)
      // A setting says which label is the positive one.
      case _ if settings.exists(_.startsWith("positive_label=")) => Some(Required)
      case _ => Some(if (hasTwoClasses) TwoClasses else Required)
    }
  }
}
