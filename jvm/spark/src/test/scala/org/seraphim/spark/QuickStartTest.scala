package org.seraphim.spark

import breeze.linalg.DenseVector
import breeze.optimize.{DiffFunction, LBFGS}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{Test, Timeout}

/** The quick start of docs/spark.md: its code is here and in EstimatorTest, and runs. */
@Timeout(120)
class QuickStartTest {
  import QuickStartTest._

  @Test def the_code_of_the_page_is_the_code_of_this_test(): Unit = {
    val page = lines("../../docs/spark.md")
    val own = Seq("QuickStartTest", "ml/EstimatorTest")
      .flatMap(name => lines(s"src/test/scala/org/seraphim/spark/$name.scala")).map(_.trim).toSet
    val code = page.scanLeft((false, "")) { case ((isCode, _), line) =>
      if (line.startsWith("```")) (line.startsWith("```scala"), "") else (isCode, line)
    }.collect { case (true, line) if line.trim.nonEmpty && !line.trim.startsWith("//") => line.trim }
    assertTrue(code.size > 20, s"${code.size} lines of code in the page")
    code.foreach(line => assertTrue(own.contains(line), s"docs/spark.md has a line that is not tested: $line"))
  }

  private def lines(file: String): Vector[String] = {
    val source = scala.io.Source.fromFile(file)
    try source.getLines().toVector finally source.close()
  }

  @Test def both_programs_give_the_same_model(): Unit = {
    val records = SparseRecords.a9a().take(2000)
    val context = TestSpark.start("local[2]", SeraphimPluginTest.settings(2): _*)
    try {
      val data = context.parallelize(records, 2).cache()
      val expected = inTheDriver(data, SparseRecords.A9aDimension)
      val actual = onServers(context, data, SparseRecords.A9aDimension)
      assertArrayEquals(expected, actual, Tolerance)
    } finally context.stop()
  }
}

object QuickStartTest {
  /** Sums are added in other orders, and 20 iterations enlarge the difference. */
  private val Tolerance = 1e-6

  // The loss and the gradient of the records of one partition.
  def logistic(records: Iterator[SparseRecord], w: Array[Double], gradient: Array[Double]): Double = {
    var loss = 0.0
    for (SparseRecord(label, columns, values) <- records) {
      val margin = columns.indices.map(k => w(columns(k)) * values(k)).sum
      loss += math.log1p(math.exp(-math.abs(margin))) + math.max(margin, 0.0) - label * margin
      val slope = 1.0 / (1.0 + math.exp(-margin)) - label
      for (k <- columns.indices) gradient(columns(k)) += slope * values(k)
    }
    loss
  }

  def inTheDriver(data: RDD[SparseRecord], dimension: Int): Array[Double] = {
    val objective = new DiffFunction[DenseVector[Double]] {
      def calculate(w: DenseVector[Double]) = {
        val weights = data.sparkContext.broadcast(w.data)
        val (loss, gradient) = data.mapPartitions { records =>
          val part = new Array[Double](weights.value.length)
          Iterator((logistic(records, weights.value, part), DenseVector(part)))
        }.reduce((a, b) => (a._1 + b._1, a._2 + b._2))
        (loss, gradient)
      }
    }
    new LBFGS[DenseVector[Double]](20, 10).minimize(objective, DenseVector.zeros[Double](dimension)).toArray
  }

  def onServers(context: SparkContext, data: RDD[SparseRecord], dimension: Int): Array[Double] = {
    import org.seraphim.spark.ServerVectorSpace._
    import org.seraphim.spark.{ServerVector, SparkObjective, VectorPool}
    val pool = VectorPool.open(context, dimension, 48)
    val objective = new SparkObjective(data, pool)(logistic)
    val model = new LBFGS[ServerVector](20, 10).minimize(objective, pool.zeros()).pull()
    pool.close()
    model
  }
}
