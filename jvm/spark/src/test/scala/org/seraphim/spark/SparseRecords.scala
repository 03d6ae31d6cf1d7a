package org.seraphim.spark

import java.io.FileInputStream
import java.nio.file.{Files, Path, Paths}
import java.util.zip.GZIPInputStream

import scala.io.Source

import org.junit.jupiter.api.Assumptions

/** A record: a label of 0 or 1, columns from 0 on and their values. */
final case class SparseRecord(label: Double, columns: Array[Int], values: Array[Double])

/** Records of the tests, and the logistic loss on them. */
object SparseRecords {
  val A9aDimension = 123

  /** a9a, from the folder that `SERAPHIM_DATA` names. Without it the test is skipped. */
  def a9a(): Vector[SparseRecord] = {
    val folder = Option(System.getenv("SERAPHIM_DATA")).fold(defaultFolder)(Paths.get(_))
    val file = folder.resolve("a9a/train.libsvm.gz")
    if (!Files.exists(file)) {
      val line = s"SKIPPED: there are no data at $file; SERAPHIM_DATA names their folder"
      System.err.println(line)
      Assumptions.abort[Unit](line)
    }
    val source = Source.fromInputStream(new GZIPInputStream(new FileInputStream(file.toFile)))
    try source.getLines().map(parse).toVector finally source.close()
  }

  /** `../shared/data` beside the clone, from the folder of the module. */
  private def defaultFolder: Path = Paths.get("../../../shared/data")

  private def parse(line: String): SparseRecord = {
    val words = line.trim.split(' ')
    val (columns, values) = words.tail.map(_.split(':')).map(pair => (pair(0).toInt - 1, pair(1).toDouble)).unzip
    SparseRecord(if (words.head.toDouble > 0) 1.0 else 0.0, columns, values)
  }

  /** The sum of logistic losses divided by `count`; its gradient is added to `gradient`. */
  def logistic(count: Int)(records: Iterator[SparseRecord], w: Array[Double], gradient: Array[Double]): Double = {
    var loss = 0.0
    for (SparseRecord(label, columns, values) <- records) {
      var margin = 0.0
      for (k <- columns.indices) margin += w(columns(k)) * values(k)
      // log(1 + e^m) in its stable form.
      loss += (math.max(margin, 0.0) + math.log1p(math.exp(-math.abs(margin))) - label * margin) / count
      val slope = (1.0 / (1.0 + math.exp(-margin)) - label) / count
      for (k <- columns.indices) gradient(columns(k)) += slope * values(k)
    }
    loss
  }
}
