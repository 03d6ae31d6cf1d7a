package org.seraphim.spark.ml

import org.apache.spark.ml.attribute.{AttributeGroup, AttributeType}
import org.apache.spark.sql.types.StructField

/**
 * The slots of a column of vectors, which become columns of a table: each number is a column, and a binary slot, such as
 * one of OneHotEncoder, is a word that a record has or not. So the program standardizes numbers and leaves the others.
 * The words are in a column with the name that the vectors have in the training.
 */
private[ml] final case class VectorSlots(column: String, names: Seq[String], areNumbers: Seq[Boolean]) {
  def size: Int = names.size
  def numbers: Seq[Int] = areNumbers.indices.filter(areNumbers)
  def hasWords: Boolean = areNumbers.contains(false)
}

private[ml] object VectorSlots {
  /** Whether the metadata of a column describe its slots. */
  def hasMetadata(field: StructField): Boolean = AttributeGroup.fromStructField(field).attributes.nonEmpty

  /** A table has a column for each number. More of them than this stay a vector. */
  private val MaxNumbers = 1000
  private val MaxSlots = 1 << 16

  /**
   * The slots that the metadata of a column describe, if it has numbers that are better read as columns. `taken` are the
   * names of the other columns.
   */
  def ofMetadata(field: StructField, taken: Set[String]): Option[VectorSlots] =
    AttributeGroup.fromStructField(field).attributes.flatMap { attributes =>
      val areNumbers = attributes.toSeq.map(_.attrType != AttributeType.Binary)
      val count = areNumbers.count(identity)
      if (count == 0 || count > MaxNumbers || attributes.length > MaxSlots) None
      else {
        val names = attributes.toSeq.zipWithIndex.map { case (one, i) => one.name.getOrElse(s"${field.name}_$i") }
        Some(VectorSlots(field.name, distinct(names, taken + field.name), areNumbers))
      }
    }

  /** The slots of dense vectors without metadata: all are numbers. */
  def ofDense(column: String, size: Int, taken: Set[String]): Option[VectorSlots] =
    if (size == 0 || size > MaxNumbers) None
    else {
      val names = (0 until size).map(i => s"${column}_$i")
      Some(VectorSlots(column, distinct(names, taken + column), Seq.fill(size)(true)))
    }

  private def distinct(names: Seq[String], taken: Set[String]): Seq[String] = {
    var used = taken
    names.zipWithIndex.map { case (name, i) =>
      val one = (Iterator(name) ++ Iterator.from(i).map(n => s"${name}_$n")).find(one => !used(one)).get
      used += one
      one
    }
  }
}
