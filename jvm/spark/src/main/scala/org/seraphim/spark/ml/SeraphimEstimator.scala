package org.seraphim.spark.ml

import org.apache.spark.ml.classification.ProbabilisticClassifier
import org.apache.spark.ml.linalg.{DenseVector, Vector}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Dataset, Row}

import org.seraphim.spark.{SeraphimConf, SupportedVersions}

/**
 * Trains any algorithm of the program on a DataFrame: `new SeraphimEstimator().setAlgorithm("fm").fit(frame)`.
 *
 * `regParam`, `elasticNetParam`, `maxIter` and `standardization` give the objective of Spark ML. Without them the program
 * chooses the settings from the data. It is a classifier for Spark, so that OneVsRest takes it, also where the algorithm
 * learns values or clusters.
 */
class SeraphimEstimator(override val uid: String)
    extends ProbabilisticClassifier[Vector, SeraphimEstimator, SeraphimModel] with SeraphimTrainingParams
    with DefaultParamsWritable {

  def this() = this(Identifiable.randomUID("seraphim"))

  override def setFeaturesCol(name: String): this.type = set(featuresCol, name)
  override def setLabelCol(name: String): this.type = set(labelCol, name)
  override def setPredictionCol(name: String): this.type = set(predictionCol, name)
  override def setProbabilityCol(name: String): this.type = set(probabilityCol, name)
  override def setRawPredictionCol(name: String): this.type = set(rawPredictionCol, name)

  override def fit(dataset: Dataset[_]): SeraphimModel = {
    transformSchema(dataset.schema)
    copyValues(train(dataset).setParent(this))
  }

  override protected def train(dataset: Dataset[_]): SeraphimModel = {
    val rows = dataset.toDF().rdd
    val trained = NativeTraining.run(rows, plan(dataset, rows))
    new SeraphimModel(uid, trained.archive, trained.report)
  }

  private def plan(dataset: Dataset[_], rows: RDD[Row]): TrainingPlan = {
    val context = dataset.sparkSession.sparkContext
    SupportedVersions.check(context.version)
    // In local mode the driver's cores are all there are; elsewhere a task has its own.
    val taskCores = context.getConf.getInt("spark.task.cpus", 1)
    val slots = context.defaultParallelism / taskCores
    if (context.isLocal && $(numWorkers) > slots) {
      throw new IllegalArgumentException(
        s"numWorkers is ${$(numWorkers)}, and this session runs at most $slots tasks at once (${context.master}); " +
          "its workers need to run at once")
    }
    val conf = SeraphimConf.of(context.getConf)
    val rule = SettingsRule($(settings).toSeq, objective)
    ProgramCommand.checkSettings(conf.binary, $(algorithm), rule.words(LabelStatistics.none))
    val schema = recordSchema(dataset.schema)
    TrainingPlan(
      conf = conf,
      // One worker needs no servers.
      cluster = if ($(numWorkers) > 1) TrainingCluster.of(context, conf) else None,
      algorithm = $(algorithm),
      schema = slotsOf(dataset.schema, schema, rows).fold(schema)(schema.withSlots),
      features = get(inputCols).map(_.toSeq).getOrElse(Seq($(featuresCol))),
      label = if (hasLabel) Some($(labelCol)) else None,
      weight = get(weightCol),
      // Spark's seeds may be negative.
      seed = $(seed) & Long.MaxValue,
      workers = $(numWorkers),
      tasks = get(numTasks),
      threads = if (context.isLocal) math.max(context.defaultParallelism / $(numWorkers), 1) else taskCores,
      settings = rule)
  }

  private def hasLabel: Boolean = AlgorithmRules.labels($(algorithm), $(settings).toSeq).nonEmpty

  /**
   * The slots of the vectors, if they are better read as columns of a table: those whose metadata name numbers, and dense
   * vectors without metadata. The objective of Spark ML standardizes all slots alike, also binary ones.
   */
  private def slotsOf(frame: StructType, schema: RecordSchema, rows: RDD[Row]): Option[VectorSlots] =
    schema.columns.find(_.kind == VectorColumn).filter(_ => readsColumns).flatMap { column =>
      val field = frame.fields(column.index)
      val taken = schema.columns.map(_.name).toSet
      if (VectorSlots.hasMetadata(field)) {
        VectorSlots.ofMetadata(field, taken).filter(slots => objective.isEmpty || !slots.hasWords)
      } else rows.take(1).map(_.get(column.index)).collectFirst { case first: DenseVector => first }.flatMap { first =>
        VectorSlots.ofDense(column.name, first.size, taken)
      }
    }

  private def readsColumns: Boolean =
    AlgorithmRules.Standardizing($(algorithm)) && !$(settings).exists(_.startsWith("dimensions="))

  override def transformSchema(schema: StructType): StructType = {
    recordSchema(schema)
    objective
    schema
  }

  override def copy(extra: ParamMap): SeraphimEstimator = defaultCopy(extra)
}

object SeraphimEstimator extends DefaultParamsReadable[SeraphimEstimator] {
  override def load(path: String): SeraphimEstimator = super.load(path)
}
