package org.seraphim.spark.ml

import org.apache.spark.ml.param._
import org.apache.spark.ml.param.shared._
import org.apache.spark.sql.types.StructType

/** The parameters that estimators and models of Seraphim share. */
trait SeraphimParams
    extends Params with HasFeaturesCol with HasInputCols with HasPredictionCol with HasProbabilityCol
    with HasRawPredictionCol with HasThreshold {

  setDefault(threshold -> 0.5)

  def setFeaturesCol(name: String): this.type = set(featuresCol, name)
  /** Numbers, booleans and strings as features, instead of a vector. */
  def setInputCols(names: Array[String]): this.type = set(inputCols, names)
  def setPredictionCol(name: String): this.type = set(predictionCol, name)
  def setProbabilityCol(name: String): this.type = set(probabilityCol, name)
  def setRawPredictionCol(name: String): this.type = set(rawPredictionCol, name)
  /** A record whose probability of label 1 is above it is predicted as 1. */
  def setThreshold(value: Double): this.type = set(threshold, value)

  private[ml] def featureColumns(schema: StructType): Seq[RecordColumn] =
    RecordSchema.ofFeatures(schema, $(featuresCol), get(inputCols).map(_.toSeq))
}

/** The parameters of a training. */
trait SeraphimTrainingParams
    extends SeraphimParams with HasLabelCol with HasWeightCol with HasValidationIndicatorCol with HasSeed {

  /** Parameters of the algorithm as `name=value`; `seraphim algorithms NAME` lists them. */
  final val settings = new StringArrayParam(this, "settings", "parameters of the algorithm as name=value",
    (all: Array[String]) => all.forall(_.indexOf('=') > 0))
  /** Number of tasks: part of the job, another number gives another model. */
  final val numTasks =
    new IntParam(this, "numTasks", "number of tasks [default: from the size of the data]", ParamValidators.gt(0))

  /** Number of executors that train together: part of the job, as the number of tasks is. */
  final val numWorkers =
    new IntParam(this, "numWorkers", "number of executors that train together", ParamValidators.gt(0))

  setDefault(settings -> Array.empty[String], seed -> 1L, numWorkers -> 1)

  def setLabelCol(name: String): this.type = set(labelCol, name)
  def setWeightCol(name: String): this.type = set(weightCol, name)
  /** A column of booleans: true for records that only validate. */
  def setValidationIndicatorCol(name: String): this.type = set(validationIndicatorCol, name)
  def setSeed(value: Long): this.type = set(seed, value)
  def setSettings(values: Array[String]): this.type = set(settings, values)
  def setNumTasks(count: Int): this.type = set(numTasks, count)
  def setNumWorkers(count: Int): this.type = set(numWorkers, count)
  def getNumWorkers: Int = $(numWorkers)
  def getSettings: Array[String] = $(settings)
  def getNumTasks: Int = $(numTasks)

  private[ml] def recordSchema(schema: StructType, hasLabel: Boolean): RecordSchema = {
    val numbers = (if (hasLabel) Seq($(labelCol)) else Nil) ++ get(weightCol)
    val columns = featureColumns(schema) ++ numbers.map(name => RecordSchema.number(schema, name))
    columns.groupBy(_.name).find(_._2.size > 1).foreach { case (name, _) =>
      throw new IllegalArgumentException(
        s"column '$name' has two roles; a column is either a feature, the label or the weight")
    }
    RecordSchema(columns, get(validationIndicatorCol).map(name => RecordSchema.flag(schema, name)))
  }
}
