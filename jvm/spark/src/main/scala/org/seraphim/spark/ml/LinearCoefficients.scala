package org.seraphim.spark.ml

import java.io.BufferedReader
import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.spark.ml.linalg.{Matrices, Matrix, SparseMatrix, Vector, Vectors}

import org.seraphim.spark.LocalFolder

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

  /**
   * Asks the program for the coefficients of a model directory, whose training had vectors, or as many other columns as
   * `inputs` says; 0: their number is not known.
   */
  def of(binary: Option[String], model: Path, facts: ModelFacts, inputs: Int): LinearCoefficients = {
    val folder = LocalFolder.create("seraphim-export")
    try {
      val table = folder.resolve("coefficients.csv")
      ProgramCommand.outputOf(binary,
        Seq("export", model.toString, "--table", "coefficients", "--output", table.toString))
      val in = Files.newBufferedReader(table)
      try read(in, facts, inputs) finally in.close()
    } finally DirectoryArchive.remove(folder)
  }

  /** Reads lines `feature,key,value,...`; the name of a feature may have commas. */
  private def read(in: BufferedReader, facts: ModelFacts, inputs: Int): LinearCoefficients = {
    val width = in.readLine().split(',').length - 2
    val rows = mutable.ArrayBuffer[(Int, Array[Double])]()
    var intercepts = new Array[Double](width)
    val slots = facts.slots.map(slots => new SlotNumbers(slots))
    Iterator.continually(in.readLine()).takeWhile(_ != null).foreach { line =>
      val fields = line.split(',').takeRight(width + 1)
      val values = fields.tail.map(_.toDouble)
      fields.head.toLong match {
        case InterceptKey => intercepts = values
        case key =>
          val name = line.dropRight(fields.map(_.length + 1).sum)
          slots match {
            case Some(slots) => slots.of(key, name).foreach(slot => rows += ((slot, values)))
            case None if key >= NamedKeys =>
              throw new UnsupportedOperationException(
                "columns of strings have a coefficient for each string, which is no vector; " +
                  "`seraphim export --table coefficients` writes all of them with their names")
            case None => rows += ((key.toInt, values))
          }
      }
    }
    val known = facts.size.getOrElse(inputs)
    val count = math.max(known, if (rows.isEmpty) 0 else rows.map(_._1).max + 1)
    LinearCoefficients(matrix(rows.toSeq.sortBy(_._1), width, count), Vectors.dense(intercepts))
  }

  /** The coefficients by rows, which are sparse if most are 0: a dense matrix of many columns would not fit. */
  private def matrix(columns: Seq[(Int, Array[Double])], width: Int, count: Int): Matrix =
    if (columns.size.toLong * 2 >= count) {
      val all = new Array[Double](width * count)
      for ((feature, values) <- columns; row <- 0 until width) all(feature * width + row) = values(row)
      Matrices.dense(width, count, all)
    } else {
      val starts = (0 to width).map(_ * columns.size).toArray
      val features = Array.fill(width)(columns.map(_._1)).flatten
      val values = (0 until width).flatMap(row => columns.map(_._2(row))).toArray
      new SparseMatrix(width, count, starts, features, values, true)
    }

  /** Finds the slot of a feature: columns of numbers have the keys from 0 on, words have names. */
  private final class SlotNumbers(slots: VectorSlots) {
    private val numbers = slots.numbers
    private val words = slots.names.zipWithIndex.toMap

    def of(key: Long, feature: String): Option[Int] =
      if (key < NamedKeys) numbers.lift(key.toInt)
      else {
        val text = if (feature.startsWith("\"")) feature.drop(1).dropRight(1).replace("\"\"", "\"") else feature
        words.get(text.drop(slots.column.length + 1))
      }
  }
}
