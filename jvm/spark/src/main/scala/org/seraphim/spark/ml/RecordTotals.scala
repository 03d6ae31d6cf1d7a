package org.seraphim.spark.ml

/** What the records of a training are, or those of one block or worker. */
private[ml] final case class RecordTotals(
    records: Long,
    validation: Long,
    vectorSizes: Set[Int],
    labels: LabelStatistics) {

  def +(other: RecordTotals): RecordTotals = RecordTotals(records + other.records, validation + other.validation,
    vectorSizes ++ other.vectorSizes, labels + other.labels)

  /** Returns the reason why nothing can be trained on these records. */
  def fault(plan: TrainingPlan): Option[String] =
    if (records == 0) Some("the data have no records to train on")
    else if (vectorSizes.size > 1) {
      Some(RecordEncoder.differentSizes(plan.features.head, vectorSizes.min, vectorSizes.max).getMessage)
    } else if (records < plan.workers) {
      Some(s"numWorkers is ${plan.workers}, and there are only $records records; each worker needs at least one")
    } else plan.label.filter(_ => plan.hasTwoClasses && labels.distinct.size > 2).map { column =>
      val found = labels.distinct.toSeq.sorted.take(3).mkString(", ")
      s"column '$column' has the labels $found, expected two classes: 0 and 1, or -1 and 1; softmax takes more"
    }

  /** For other machines. */
  def text: String = Seq(records, validation, vectorSizes.mkString(","), labels.weight, labels.squares, labels.mean,
    labels.deviations, labels.distinct.mkString(",")).mkString(" ")
}

private[ml] object RecordTotals {
  val none: RecordTotals = RecordTotals(0, 0, Set.empty, LabelStatistics.none)

  def parse(text: String): RecordTotals = {
    val words = text.split(" ", -1)
    def list(word: String): Set[String] = word.split(',').filter(_.nonEmpty).toSet
    val labels = LabelStatistics(words(3).toDouble, words(4).toDouble, words(5).toDouble, words(6).toDouble,
      list(words(7)).map(_.toDouble))
    RecordTotals(words(0).toLong, words(1).toLong, list(words(2)).map(_.toInt), labels)
  }
}

/**
 * Sum of the weights and of their squares; weighted mean of the labels and sum of their squared deviations from it; the
 * different labels, up to [[LabelStatistics.MaxDistinct]] of them.
 */
private[ml] final case class LabelStatistics(
    weight: Double,
    squares: Double,
    mean: Double,
    deviations: Double,
    distinct: Set[Double]) {

  /** Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). */
  def +(other: LabelStatistics): LabelStatistics = {
    val sum = weight + other.weight
    val difference = other.mean - mean
    val share = if (sum > 0) other.weight / sum else 0.0
    LabelStatistics(sum, squares + other.squares, mean + difference * share,
      deviations + other.deviations + difference * difference * weight * share,
      (distinct ++ other.distinct).take(LabelStatistics.MaxDistinct))
  }

  /** The standard deviation of the labels; 1 if all are equal, where it must not divide. */
  def deviation: Double = {
    val variance = if (weight > 0) deviations / weight else 0.0
    if (variance > 0) math.sqrt(variance) else 1.0
  }

  /** The variance of a column as Spark estimates it, which has no bias, over the mean of the squared deviations. */
  def varianceRatio: Double = {
    val freedom = weight - squares / weight
    if (freedom > 0) weight / freedom else 1.0
  }
}

private[ml] object LabelStatistics {
  /** With more labels it does not matter which. */
  val MaxDistinct = 1000
  val none: LabelStatistics = LabelStatistics(0, 0, 0, 0, Set.empty)
}

/** Adds up the labels of records. */
private[ml] final class LabelTally {
  private var weight, squares, mean, deviations = 0.0
  private var distinct = Set[Double]()

  def add(label: Double, recordWeight: Double): Unit = {
    weight += recordWeight
    squares += recordWeight * recordWeight
    if (weight > 0) {
      val difference = label - mean
      mean += difference * recordWeight / weight
      deviations += difference * (label - mean) * recordWeight
    }
    if (distinct.size < LabelStatistics.MaxDistinct && !distinct(label)) distinct += label
  }

  /** Returns the statistics, and begins again. */
  def take(): LabelStatistics = {
    val all = LabelStatistics(weight, squares, mean, deviations, distinct)
    weight = 0
    squares = 0
    mean = 0
    deviations = 0
    distinct = Set.empty
    all
  }
}
