package org.seraphim.spark.ml

import java.util.Arrays

import org.apache.arrow.vector.types.FloatingPointPrecision.DOUBLE
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, FieldType, Schema}
import org.apache.spark.ml.linalg.SQLDataTypes.VectorType
import org.apache.spark.sql.types.{ArrayType, BooleanType, DataType, DateType, DayTimeIntervalType, NumericType, StringType, StructType, TimestampNTZType, TimestampType}

/** What a column of a DataFrame becomes in the records of the program. */
private[ml] sealed trait ColumnKind
private[ml] case object VectorColumn extends ColumnKind
/** A vector whose slots become columns. */
private[ml] final case class SlotsColumn(slots: VectorSlots) extends ColumnKind
private[ml] case object NumberColumn extends ColumnKind
private[ml] case object TextColumn extends ColumnKind
private[ml] case object WordsColumn extends ColumnKind

/** Which values a column may have. */
private[ml] sealed trait ValueRule
/** A value may be missing. */
private[ml] case object Optional extends ValueRule
/** Each record has a finite value. */
private[ml] case object Required extends ValueRule
private[ml] case object Weight extends ValueRule
/** 0 and 1, or -1 and 1. */
private[ml] case object TwoClasses extends ValueRule
/** Whole numbers. */
private[ml] case object Classes extends ValueRule

/** A column that is encoded: its name, its place in a row, its kind, and the values that it may have. */
private[ml] final case class RecordColumn(name: String, index: Int, kind: ColumnKind, rule: ValueRule)

/** The columns of a DataFrame that the program reads. */
private[ml] final case class RecordSchema(columns: Seq[RecordColumn], validation: Option[Int]) {

  /** The columns as Arrow types. A vector has the struct that Spark ML writes to Parquet. */
  def arrow: Schema = new Schema(Arrays.asList(columns.flatMap(fields): _*))

  /** This schema with the slots of its vectors as columns. */
  def withSlots(slots: VectorSlots): RecordSchema = copy(columns = columns.map { column =>
    if (column.kind == VectorColumn) column.copy(kind = SlotsColumn(slots)) else column
  })

  private def fields(column: RecordColumn): Seq[Field] = column.kind match {
    case NumberColumn => Seq(RecordSchema.number(column.name))
    case TextColumn => Seq(RecordSchema.leaf(column.name, ArrowType.Utf8.INSTANCE))
    case WordsColumn => Seq(RecordSchema.list(column.name, ArrowType.Utf8.INSTANCE))
    case VectorColumn => Seq(RecordSchema.vector(column.name))
    case SlotsColumn(slots) =>
      val words = if (slots.hasWords) Seq(RecordSchema.list(slots.column, ArrowType.Utf8.INSTANCE)) else Nil
      slots.numbers.map(slot => RecordSchema.number(slots.names(slot))) ++ words
  }
}

private[ml] object RecordSchema {
  private def leaf(name: String, kind: ArrowType): Field = new Field(name, FieldType.nullable(kind), null)

  private def number(name: String): Field = leaf(name, new ArrowType.FloatingPoint(DOUBLE))

  private def list(name: String, item: ArrowType): Field =
    new Field(name, FieldType.nullable(ArrowType.List.INSTANCE), Arrays.asList(leaf("item", item)))

  private def vector(name: String): Field = {
    val children = Seq(
      leaf("type", new ArrowType.Int(8, true)),
      leaf("size", new ArrowType.Int(32, true)),
      list("indices", new ArrowType.Int(32, true)),
      list("values", new ArrowType.FloatingPoint(DOUBLE)))
    new Field(name, FieldType.nullable(ArrowType.Struct.INSTANCE), Arrays.asList(children: _*))
  }

  /** Finds the columns of the features, and checks their types. */
  def ofFeatures(schema: StructType, featuresCol: String, inputCols: Option[Seq[String]]): Seq[RecordColumn] =
    inputCols match {
      case Some(names) if names.isEmpty =>
        throw new IllegalArgumentException("inputCols is empty; name the columns of the features, or leave it out")
      case Some(names) => names.map { name =>
        val kind = schema(required(schema, name)).dataType match {
          case _: NumericType | BooleanType => NumberColumn
          case DateType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => NumberColumn
          case StringType => TextColumn
          case ArrayType(StringType, _) => WordsColumn
          case other => throw wrongType(name, other, "a number, a boolean, a date, a time, a duration, a string or an array of strings")
        }
        RecordColumn(name, schema.fieldIndex(name), kind, Optional)
      }
      case None =>
        val index = required(schema, featuresCol)
        if (schema(index).dataType != VectorType) {
          throw wrongType(featuresCol, schema(index).dataType,
            "a vector; use VectorAssembler, or set inputCols to the columns of the features")
        }
        Seq(RecordColumn(featuresCol, index, VectorColumn, Required))
    }

  /** Finds a column that has a number for each record. */
  def number(schema: StructType, name: String, rule: ValueRule): RecordColumn = {
    val index = required(schema, name)
    schema(index).dataType match {
      case _: NumericType | BooleanType => RecordColumn(name, index, NumberColumn, rule)
      case StringType => throw wrongType(name, StringType, "a number; StringIndexer makes numbers of strings")
      case other => throw wrongType(name, other, "a number")
    }
  }

  /** Finds the column that says which records are for validation. */
  def flag(schema: StructType, name: String): Int = {
    val index = required(schema, name)
    if (schema(index).dataType != BooleanType) throw wrongType(name, schema(index).dataType, "a boolean")
    index
  }

  private def required(schema: StructType, name: String): Int =
    schema.fieldNames.count(_ == name) match {
      case 1 => schema.fieldIndex(name)
      case 0 =>
        val known = schema.fieldNames.mkString(", ")
        throw new IllegalArgumentException(s"there is no column '$name'; the columns are $known")
      case count =>
        throw new IllegalArgumentException(
          s"$count columns have the name '$name'; drop or rename all but one (toDF renames columns by position)")
    }

  private def wrongType(name: String, found: DataType, expected: String): IllegalArgumentException =
    new IllegalArgumentException(s"column '$name' has the type ${found.simpleString}, expected $expected")

  private implicit class Columns(schema: StructType) {
    def apply(index: Int) = schema.fields(index)
  }
}
