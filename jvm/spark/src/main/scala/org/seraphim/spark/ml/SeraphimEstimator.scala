package org.seraphim.spark.ml

import org.apache.spark.ml.Estimator
import org.apache.spark.ml.param.{Param, ParamMap}
import org.apache.spark.ml.param.shared.{HasElasticNetParam, HasMaxIter, HasRegParam}
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable}
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.types.StructType

import org.seraphim.spark.{SeraphimConf, SupportedVersions}

/**
 * Trains any algorithm of the program on a DataFrame: `new SeraphimEstimator().setAlgorithm("fm").fit(frame)`.
 *
 * `regParam`, `elasticNetParam` and `maxIter` have the meaning of Spark ML and are for the linear algorithms. Without
 * them the program chooses the settings from the data.
 */
class SeraphimEstimator(override val uid: String)
    extends Estimator[SeraphimModel] with SeraphimTrainingParams with HasRegParam with HasElasticNetParam
    with HasMaxIter with DefaultParamsWritable {

  def this() = this(Identifiable.randomUID("seraphim"))

  /** One of `lr`, `svm`, `linear`, `huber`, `softmax`, `fm`, `ffm`, `kmeans`. */
  final val algorithm: Param[String] =
    new Param(this, "algorithm", "the algorithm, as `seraphim algorithms` lists them", (name: String) => name.nonEmpty)

  setDefault(algorithm -> "lr", elasticNetParam -> 0.0)

  def setAlgorithm(name: String): this.type = set(algorithm, name)
  def getAlgorithm: String = $(algorithm)
  def setRegParam(value: Double): this.type = set(regParam, value)
  def setElasticNetParam(value: Double): this.type = set(elasticNetParam, value)
  def setMaxIter(value: Int): this.type = set(maxIter, value)

  override def fit(dataset: Dataset[_]): SeraphimModel = {
    val trained = NativeTraining.run(dataset.toDF().rdd, plan(dataset))
    copyValues(new SeraphimModel(uid, trained.archive, trained.report).setParent(this)).withVectors(trained.vectorSize)
  }

  private def hasLabel: Boolean = !SeraphimEstimator.Unlabelled.contains($(algorithm))

  private def plan(dataset: Dataset[_]): TrainingPlan = {
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
    TrainingPlan(
      conf = conf,
      // One worker needs no servers.
      cluster = if ($(numWorkers) > 1) TrainingCluster.of(context, conf) else None,
      algorithm = $(algorithm),
      schema = recordSchema(dataset.schema, hasLabel),
      features = get(inputCols).map(_.toSeq).getOrElse(Seq($(featuresCol))),
      label = if (hasLabel) Some($(labelCol)) else None,
      weight = get(weightCol),
      seed = $(seed),
      workers = $(numWorkers),
      tasks = get(numTasks),
      threads = if (context.isLocal) math.max(context.defaultParallelism / $(numWorkers), 1) else taskCores,
      settings = SettingsRule(iterations ++ $(settings), get(regParam), $(elasticNetParam)))
  }

  /** Spark's linear algorithms minimize over all records, so its parameters mean such an optimizer. */
  private def iterations: Seq[String] = {
    val ofSpark = Seq(regParam, maxIter).filter(param => isSet(param)).map(_.name)
    if (ofSpark.nonEmpty && !SeraphimEstimator.Linear.contains($(algorithm))) {
      val names = ofSpark.mkString(" and ")
      throw new IllegalArgumentException(
        s"$names cannot be set for ${$(algorithm)}, which is no linear algorithm; setSettings takes its parameters")
    }
    val optimizer =
      if (get(regParam).isEmpty && get(maxIter).isEmpty) Nil
      else Seq(if (get(regParam).exists(_ > 0) && $(elasticNetParam) > 0) "optimizer=owlqn" else "optimizer=lbfgs")
    optimizer ++ get(maxIter).map(count => s"max_iterations=$count")
  }

  override def transformSchema(schema: StructType): StructType = {
    recordSchema(schema, hasLabel)
    schema
  }

  override def copy(extra: ParamMap): SeraphimEstimator = defaultCopy(extra)
}

object SeraphimEstimator extends DefaultParamsReadable[SeraphimEstimator] {
  private val Linear = Set("lr", "svm", "linear", "huber", "softmax")

  /** Algorithms that learn without labels. */
  private val Unlabelled = Set("kmeans")

  override def load(path: String): SeraphimEstimator = super.load(path)
}
