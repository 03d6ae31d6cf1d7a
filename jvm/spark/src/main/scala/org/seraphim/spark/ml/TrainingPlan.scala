package org.seraphim.spark.ml

import org.seraphim.spark.SeraphimConf

/** What a training has given: the model directory, the report of the program, and the size of the vectors, if any. */
private[ml] final case class Trained(archive: Array[Byte], report: String, vectorSize: Option[Int])

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
    settings: SettingsRule)

/** The parameters of the algorithm. Some of them depend on the sum of the weights of the records. */
private[ml] final case class SettingsRule(ofUser: Seq[String], regParam: Option[Double], elasticNet: Double) {

  /** Spark adds the penalty to the mean of the losses, the program to their sum. */
  def words(weightSum: Double): Seq[String] = {
    val penalties = regParam.toSeq.flatMap { reg =>
      Seq(s"l1=${reg * elasticNet * weightSum}", s"l2=${reg * (1 - elasticNet) * weightSum}")
    }
    (penalties ++ ofUser).flatMap(setting => Seq("--set", setting))
  }
}
