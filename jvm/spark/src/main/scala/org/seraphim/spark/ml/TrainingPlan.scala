package org.seraphim.spark.ml

import org.seraphim.spark.SeraphimConf

/** What a training has given: the model directory, and the report of the program. */
private[ml] final case class Trained(archive: Array[Byte], report: String)

/**
 * A training of the program: which algorithm, which columns, which settings, and on how many executors. `cluster` has the
 * parameters; without it the training starts servers of its own, or needs none.
 */
private[ml] final case class TrainingPlan(
    conf: SeraphimConf,
    cluster: Option[TrainingCluster],
    algorithm: String,
    schema: RecordSchema,
    features: Seq[String],
    label: Option[String],
    weight: Option[String],
    seed: Long,
    workers: Int,
    tasks: Option[Int],
    threads: Int,
    settings: SettingsRule) {

  /** Whether labels are two classes that no setting names. */
  def hasTwoClasses: Boolean = schema.columns.exists(_.rule == TwoClasses)

  /** The slots of the vectors, if they are columns. */
  def slots: Option[VectorSlots] = schema.columns.map(_.kind).collectFirst { case SlotsColumn(slots) => slots }

  /** What the model has to know of the records of its training. */
  def facts(totals: RecordTotals): ModelFacts =
    ModelFacts(totals.vectorSizes.headOption, slots, totals.labels.distinct.toSeq.sorted)
}

/** The parameters of the algorithm: those of the user, and those that follow from the objective of Spark ML. */
private[ml] final case class SettingsRule(ofUser: Seq[String], objective: Option[SparkObjectiveRule]) {
  def words(labels: LabelStatistics): Seq[String] =
    (objective.toSeq.flatMap(_.settings(labels)) ++ ofUser).flatMap(setting => Seq("--set", setting))
}

/**
 * The objective of Spark ML in the parameters of the program. Spark penalizes the mean of the losses and the program
 * their sum. Spark's linear regression divides labels by their deviation, which the L2 penalty does not undo, and its
 * classifiers divide columns by deviations without bias.
 */
private[ml] final case class SparkObjectiveRule(
    regParam: Double,
    elasticNet: Double,
    maxIter: Int,
    standardization: Boolean,
    isRegression: Boolean) {

  def settings(labels: LabelStatistics): Seq[String] = {
    val scale = if (standardization && !isRegression) labels.varianceRatio else 1.0
    val l1 = regParam * elasticNet * labels.weight * math.sqrt(scale)
    val l2 = regParam * (1 - elasticNet) * labels.weight * scale / (if (isRegression) labels.deviation else 1.0)
    val optimizer = if (l1 > 0) "owlqn" else "lbfgs"
    Seq(s"optimizer=$optimizer", s"max_iterations=$maxIter", s"standardize=$standardization", s"l1=$l1", s"l2=$l2")
  }
}
