package org.seraphim.spark.ml

import java.nio.{ByteBuffer, ByteOrder}

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * Logistic regression from a libsvm file through a DataFrame to a model: `FILE COLUMNS seraphim|spark ITERATIONS`, with an
 * L2 penalty of 10 by the number of records. Prints a line of JSON: seconds to load the data and to train, and the
 * objective that is reached, which is the mean loss and the penalty.
 */
object EstimatorBenchmark {
  def main(arguments: Array[String]): Unit = {
    val Array(file, columns, who, iterations) = arguments
    val session = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
      .config("spark.seraphim.binary", sys.env.getOrElse("SERAPHIM_BIN", "seraphim")).getOrCreate()
    val begin = System.nanoTime()
    val frame = session.read.format("libsvm").option("numFeatures", columns).load(file)
    // Spark reads the rows in each iteration, so it keeps them.
    val count = if (who == "spark") frame.cache().count() else frame.count()
    val loaded = System.nanoTime()
    val penalty = 10.0 / count
    val objective =
      if (who == "spark") bySpark(frame, penalty, iterations.toInt) else bySeraphim(frame, penalty, iterations.toInt)
    val trained = System.nanoTime()
    session.stop()
    println(s"""{"load_s": ${(loaded - begin) / 1e9}, "train_s": ${(trained - loaded) / 1e9}, "objective": $objective}""")
  }

  private def bySpark(frame: DataFrame, penalty: Double, iterations: Int): Double =
    new LogisticRegression().setRegParam(penalty).setMaxIter(iterations).setStandardization(false).fit(frame)
      .summary.objectiveHistory.last

  private def bySeraphim(frame: DataFrame, penalty: Double, iterations: Int): Double = {
    val estimator = new SeraphimLogisticRegression().setRegParam(penalty).setMaxIter(iterations)
    val model = estimator.setSettings(Array("standardize=false")).fit(frame)
    val epochs = new ObjectMapper().readTree(model.summary).path("epochs")
    epochs.get(epochs.size - 1).path("training").path("log_loss").asDouble + penalty / 2 * sumOfSquares(model)
  }

  /** The sum of the squares of the weights without the constant. */
  private def sumOfSquares(model: SeraphimModel): Double = {
    val file = ByteBuffer.wrap(DirectoryArchive.read(model.archive, "weights.safetensors").get)
    val header = new Array[Byte](file.order(ByteOrder.LITTLE_ENDIAN).getLong.toInt)
    file.get(header)
    val range = new ObjectMapper().readTree(header).path("weights").path("data_offsets")
    val data = file.position()
    (range.get(0).asInt until range.get(1).asInt by 4).map(at => file.getFloat(data + at).toDouble).map(w => w * w).sum
  }
}
