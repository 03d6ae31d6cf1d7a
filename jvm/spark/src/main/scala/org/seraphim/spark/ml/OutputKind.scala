package org.seraphim.spark.ml

import org.apache.spark.ml.linalg.{DenseVector, Vector, Vectors}

/** What the raw scores of a model mean. */
private[ml] sealed trait OutputKind extends Serializable

/** The first number is the prediction: a value, or the number of a cluster; or the logarithm of the prediction. */
private[ml] final case class ValueOutput(isLogarithm: Boolean) extends OutputKind {
  def predict(score: Double): Double = if (isLogarithm) math.exp(score) else score
}

/** Scores of classes. */
private[ml] sealed trait ClassOutput extends OutputKind {
  /** The number of entries of `rawPrediction`. */
  def numClasses: Int
  def hasProbability: Boolean
  /** The label of each entry. */
  def labels: Seq[Double]
  /** The vector `rawPrediction` of the scores of a record. */
  def raw(scores: Array[Double]): Vector
  /** Turns raw predictions into probabilities, in place. */
  def toProbability(raw: DenseVector): Vector

  /** The predicted label. `threshold` is for two classes. */
  def predict(raw: Vector, threshold: Option[Double], thresholds: Option[Array[Double]]): Double
}

/** One number: the distance to the boundary between two labels, which are probabilities of it if the loss is logistic. */
private[ml] final case class TwoClassOutput(hasProbability: Boolean, negative: Double, positive: Double)
    extends ClassOutput {
  override def numClasses: Int = 2
  override def labels: Seq[Double] = Seq(negative, positive)
  override def raw(scores: Array[Double]): Vector = Vectors.dense(-scores(0), scores(0))

  override def toProbability(raw: DenseVector): Vector = {
    val margin = raw(1)
    raw.values(0) = 1 / (1 + math.exp(margin))
    raw.values(1) = 1 / (1 + math.exp(-margin))
    raw
  }

  override def predict(raw: Vector, threshold: Option[Double], thresholds: Option[Array[Double]]): Double = {
    val score = if (hasProbability) toProbability(raw.copy.toDense)(1) else raw(1)
    val limit = threshold.getOrElse(if (hasProbability) 0.5 else 0.0)
    val isPositive = thresholds.fold(score > limit)(ClassOutput.largest(toProbability(raw.copy.toDense), _) == 1)
    if (isPositive) positive else negative
  }
}

/**
 * One number for each class. The entries are in the order of the labels; labels that are whole numbers from 0 on, up to a
 * few thousand, have the entry of their number, as Spark's evaluators expect, and classes that the training did not have
 * the probability 0.
 */
private[ml] final case class ClassesOutput(classes: Seq[Double]) extends ClassOutput {
  private val isIndexed = classes.forall(label => label >= 0 && label < ClassOutput.MaxIndexed)
  override val numClasses: Int = if (isIndexed) classes.max.toInt + 1 else classes.size
  override def hasProbability: Boolean = true
  override def labels: Seq[Double] = if (isIndexed) (0 until numClasses).map(_.toDouble) else classes

  override def raw(scores: Array[Double]): Vector =
    if (!isIndexed) Vectors.dense(scores)
    else {
      val all = Array.fill(numClasses)(Double.NegativeInfinity)
      classes.indices.foreach(i => all(classes(i).toInt) = scores(i))
      Vectors.dense(all)
    }

  override def toProbability(raw: DenseVector): Vector = {
    val largest = raw.values.max
    val sum = raw.values.indices.map { i =>
      raw.values(i) = math.exp(raw.values(i) - largest)
      raw.values(i)
    }.sum
    raw.values.indices.foreach(i => raw.values(i) /= sum)
    raw
  }

  override def predict(raw: Vector, threshold: Option[Double], thresholds: Option[Array[Double]]): Double =
    labels(thresholds.fold(raw.argmax)(ClassOutput.largest(toProbability(raw.copy.toDense), _)))
}

private[ml] object ClassOutput {
  /** Labels up to it are positions in a vector. */
  val MaxIndexed = 4096

  /** The class with the largest probability over its threshold, as in Spark ML. */
  def largest(probability: Vector, thresholds: Array[Double]): Int = {
    val scaled = probability.toArray.zip(thresholds).map { case (p, t) => if (t == 0) Double.PositiveInfinity else p / t }
    scaled.indexOf(scaled.max)
  }
}

/** Which columns a transformation appends, and how it predicts. */
private[ml] final case class OutputColumns(
    kind: OutputKind,
    hasRaw: Boolean,
    hasProbability: Boolean,
    hasPrediction: Boolean,
    threshold: Option[Double],
    thresholds: Option[Array[Double]]) {

  def values(scores: Array[Double]): Seq[Any] = kind match {
    case value: ValueOutput => if (hasPrediction) Seq(value.predict(scores(0))) else Nil
    case classes: ClassOutput =>
      val raw = classes.raw(scores)
      (if (hasRaw) Seq(raw) else Nil) ++ (if (hasProbability) Seq(classes.toProbability(raw.copy.toDense)) else Nil) ++
        (if (hasPrediction) Seq(classes.predict(raw, threshold, thresholds)) else Nil)
  }
}
