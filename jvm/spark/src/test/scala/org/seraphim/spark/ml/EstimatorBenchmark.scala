package org.seraphim.spark.ml

import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.ml.linalg.Vector
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * From a libsvm file through a DataFrame to a model: `FILE COLUMNS seraphim|spark ITERATIONS`, with an L2 penalty of 10 by
 * the number of records. Prints the seconds of the training, the mean loss with its penalty where Spark tells it, and the
 * mean loss on the records.
 */
object EstimatorBenchmark {
  def main(arguments: Array[String]): Unit = {
    val Array(file, columns, who, iterations) = arguments
    val session = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
      .config("spark.seraphim.binary", sys.env.getOrElse("SERAPHIM_BIN", "seraphim")).getOrCreate()
    val begin = System.nanoTime()
    val frame = session.read.format("libsvm").option("numFeatures", columns).load(file)
    val count = if (who == "spark") frame.cache().count() else frame.count()
    val loaded = System.nanoTime()
    val regularization = 10.0 / count
    val scored = if (who == "spark") {
      val estimator = new LogisticRegression().setRegParam(regularization).setMaxIter(iterations.toInt)
        .setStandardization(false)
      val model = estimator.fit(frame)
      println(s"objective ${model.summary.objectiveHistory.last}")
      done(loaded)
      model.transform(frame)
    } else {
      val estimator = new SeraphimLogisticRegression().setRegParam(regularization).setMaxIter(iterations.toInt)
        .setSettings(Array("standardize=false"))
      val model = estimator.fit(frame)
      done(loaded)
      println(model.summary.take(2000))
      model.transform(frame)
    }
    println(f"loaded in ${(loaded - begin) / 1e9}%.1f s, $count records")
    println(f"mean loss ${meanLoss(scored)}%.6f, scored after ${(System.nanoTime() - begin) / 1e9}%.1f s in all")
    session.stop()
  }

  private def done(since: Long): Unit = println(f"trained in ${(System.nanoTime() - since) / 1e9}%.1f s")

  private def meanLoss(scored: DataFrame): Double = scored.select("label", "probability").rdd.map { row =>
    -math.log(math.max(row.getAs[Vector](1)(row.getDouble(0).toInt), 1e-300))
  }.mean()
}
