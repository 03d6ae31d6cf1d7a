package org.seraphim.spark.ml

import org.apache.spark.ml.util.{DefaultParamsReadable, Identifiable}

/** Logistic regression of two classes with the labels 0 and 1. */
final class SeraphimLogisticRegression(uid: String) extends SeraphimEstimator(uid) {
  def this() = this(Identifiable.randomUID("seraphim-lr"))

  setDefault(algorithm -> "lr")
}

object SeraphimLogisticRegression extends DefaultParamsReadable[SeraphimLogisticRegression] {
  override def load(path: String): SeraphimLogisticRegression = super.load(path)
}

/** Linear regression with the squared loss. */
final class SeraphimLinearRegression(uid: String) extends SeraphimEstimator(uid) {
  def this() = this(Identifiable.randomUID("seraphim-linear"))

  setDefault(algorithm -> "linear")
}

object SeraphimLinearRegression extends DefaultParamsReadable[SeraphimLinearRegression] {
  override def load(path: String): SeraphimLinearRegression = super.load(path)
}

/** Softmax regression of several classes, whose labels are whole numbers. */
final class SeraphimSoftmaxRegression(uid: String) extends SeraphimEstimator(uid) {
  def this() = this(Identifiable.randomUID("seraphim-softmax"))

  setDefault(algorithm -> "softmax")
}

object SeraphimSoftmaxRegression extends DefaultParamsReadable[SeraphimSoftmaxRegression] {
  override def load(path: String): SeraphimSoftmaxRegression = super.load(path)
}
