package org.seraphim.spark.ml

import java.io.BufferedReader
import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.ml.linalg.{Matrices, Matrix, Vector, Vectors}

import org.seraphim.spark.{BundledProgram, ChildProcess, LocalFolder}

/** The coefficients of a linear model: one row for each class of `softmax`, one row in other models. */
private[ml] final case class LinearCoefficients(matrix: Matrix, intercepts: Vector) {
  def only: (Vector, Double) = {
    if (matrix.numRows != 1) {
      throw new UnsupportedOperationException(
        s"this model has ${matrix.numRows} classes: it has a coefficientMatrix and an interceptVector")
    }
    (matrix.rowIter.next(), intercepts(0))
  }
}

private[ml] object LinearCoefficients {
  /** Keys from this one on are hashes of names. */
  private val NamedKeys = 1L << 62
  private val InterceptKey = -1L

  /** Asks the program for the coefficients of a model directory with `size` features; 0: their number is not known. */
  def of(binary: Option[String], model: Path, size: Int): LinearCoefficients = {
    val folder = LocalFolder.create("seraphim-export")
    try {
      val table = folder.resolve("coefficients.csv")
      run(Seq(BundledProgram.find(binary), "export", model.toString, "--table", "coefficients", "--output",
        table.toString))
      val in = Files.newBufferedReader(table)
      try read(in, size) finally in.close()
    } finally DirectoryArchive.remove(folder)
  }

  private def run(command: Seq[String]): Unit = {
    val process = new ChildProcess(command)
    try {
      val lines = mutable.ArrayBuffer[String]()
      val status = process.waitForEnd(() => ())(line => lines += line)
      if (status != 0) throw ProgramFailure.ofProgram(lines.toSeq, status)
    } finally process.close()
  }

  /** Reads lines `feature,key,value,...`; the name of a feature may have commas. */
  private def read(in: BufferedReader, size: Int): LinearCoefficients = {
    val width = in.readLine().split(',').length - 2
    val rows = mutable.ArrayBuffer[(Int, Array[Double])]()
    var intercepts = new Array[Double](width)
    Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
      val fields = line.split(',').takeRight(width + 1)
      val values = fields.tail.map(_.toDouble)
      fields.head.toLong match {
        case InterceptKey => intercepts = values
        case key if key >= NamedKeys =>
          throw new UnsupportedOperationException(
            "columns of strings have a coefficient for each string, which is no vector; " +
              "`seraphim export --table coefficients` writes all of them with their names")
        case key => rows += ((key.toInt, values))
      }
    }
    val count = math.max(size, if (rows.isEmpty) 0 else rows.map(_._1).max + 1)
    val all = new Array[Double](width * count)
    for ((feature, values) <- rows; row <- 0 until width) all(feature * width + row) = values(row)
    LinearCoefficients(Matrices.dense(width, count, all), Vectors.dense(intercepts))
  }
}
