package org.seraphim.spark.ml

import java.io.{ByteArrayOutputStream, OutputStream}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8
import java.time.{Duration, Instant, LocalDate, LocalDateTime, ZoneOffset}

import scala.collection.mutable

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector._
import org.apache.arrow.vector.complex.{ListVector, StructVector}
import org.apache.arrow.vector.ipc.{ArrowFileWriter, ArrowStreamWriter}
import org.apache.spark.ml.linalg.{DenseVector, SparseVector, Vector}
import org.apache.spark.sql.Row

/**
 * Encodes rows as Arrow record batches.
 *
 * It checks what the program could not explain to a user of Spark: missing values, numbers that are not finite, labels
 * and weights that the algorithm does not take, vectors of different sizes, or of another size than those of the
 * training (`trainedSize`).
 */
private[ml] final class RecordEncoder(schema: RecordSchema, trainedSize: Option[Int] = None) extends AutoCloseable {
  private val allocator = new RootAllocator(Long.MaxValue)
  private val root = VectorSchemaRoot.create(schema.arrow, allocator)
  private val writers = schema.columns.map(writer).toArray
  private var count = 0
  private var entries = 0L
  private var size = schema.columns.map(_.kind).collectFirst { case SlotsColumn(slots) => slots.size }.getOrElse(-1)

  /** Records since the last batch. */
  def records: Int = count

  /** Values of vectors and words since the last batch, or records where there are no vectors. */
  def weight: Long = math.max(entries, count.toLong)

  /** The size of the vectors; -1 if there was none. */
  def vectorSize: Int = size

  def add(row: Row): Unit = {
    var i = 0
    while (i < writers.length) {
      writers(i)(row)
      i += 1
    }
    count += 1
  }

  /** Returns the records as an Arrow file, and begins the next batch. */
  def toFile(): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val file = new ArrowFileWriter(root, null, Channels.newChannel(bytes))
    try {
      file.start()
      root.setRowCount(count)
      file.writeBatch()
      file.end()
    } finally file.close()
    reset()
    bytes.toByteArray
  }

  /** Begins a stream of batches. */
  def stream(out: OutputStream): RecordStream =
    new RecordStream(new ArrowStreamWriter(root, null, Channels.newChannel(out)))

  /** A stream of the records that are added. */
  final class RecordStream(writer: ArrowStreamWriter) {
    writer.start()

    /** Writes the records since the last batch. */
    def writeBatch(): Unit = {
      root.setRowCount(count)
      writer.writeBatch()
      reset()
    }

    def end(): Unit = writer.close()
  }

  private def reset(): Unit = {
    root.clear()
    count = 0
    entries = 0
  }

  override def close(): Unit = {
    root.close()
    allocator.close()
  }

  private def writer(column: RecordColumn): Row => Unit = {
    def vector(name: String): FieldVector = root.getVector(name)
    column.kind match {
      case NumberColumn => writeNumber(column, vector(column.name).asInstanceOf[Float8Vector])
      case TextColumn => writeText(column, vector(column.name).asInstanceOf[VarCharVector])
      case WordsColumn => writeWords(column, vector(column.name).asInstanceOf[ListVector])
      case VectorColumn => writeVector(column, vector(column.name).asInstanceOf[StructVector])
      case SlotsColumn(slots) =>
        val numbers = new Array[Float8Vector](slots.size)
        slots.numbers.foreach(slot => numbers(slot) = vector(slots.names(slot)).asInstanceOf[Float8Vector])
        val words = if (slots.hasWords) Some(vector(slots.column).asInstanceOf[ListVector]) else None
        writeSlots(column, slots, numbers, words)
    }
  }

  private def writeNumber(column: RecordColumn, out: Float8Vector)(row: Row): Unit = row.get(column.index) match {
    case null if column.rule != Optional => throw missing(column)
    case null => out.setNull(count)
    case value =>
      val number = RecordEncoder.number(value)
      RecordEncoder.expected(column.rule, number).foreach { expected =>
        throw new IllegalArgumentException(s"column '${column.name}' has the value $number, expected $expected")
      }
      out.setSafe(count, number)
  }

  private def writeText(column: RecordColumn, out: VarCharVector)(row: Row): Unit = row.getString(column.index) match {
    case null => out.setNull(count)
    case text => out.setSafe(count, text.getBytes(UTF_8))
  }

  private def writeWords(column: RecordColumn, out: ListVector)(row: Row): Unit =
    if (row.isNullAt(column.index)) out.setNull(count)
    else {
      val words = row.getSeq[String](column.index)
      val data = out.getDataVector.asInstanceOf[VarCharVector]
      writeList(out, words.length) { (position, i) =>
        if (words(i) == null) data.setNull(position) else data.setSafe(position, words(i).getBytes(UTF_8))
      }
      entries += words.length
    }

  private def writeVector(column: RecordColumn, out: StructVector): Row => Unit = {
    val kind = out.getChild("type").asInstanceOf[TinyIntVector]
    val length = out.getChild("size").asInstanceOf[IntVector]
    val indices = out.getChild("indices").asInstanceOf[ListVector]
    val values = out.getChild("values").asInstanceOf[ListVector]
    row =>
      val vector = present(column, row)
      out.setIndexDefined(count)
      vector match {
        case sparse: SparseVector =>
          kind.setSafe(count, 0)
          length.setSafe(count, sparse.size)
          writeIndices(indices, sparse.indices)
          writeValues(values, sparse.values)
        case dense: DenseVector =>
          kind.setSafe(count, 1)
          length.setNull(count)
          indices.setNull(count)
          writeValues(values, dense.values)
      }
  }

  private def writeSlots(column: RecordColumn, slots: VectorSlots, numbers: Array[Float8Vector],
      words: Option[ListVector])(row: Row): Unit = {
    val vector = present(column, row)
    val ones = mutable.ArrayBuffer[Array[Byte]]()
    numbers.foreach(out => if (out != null) out.setSafe(count, 0.0))
    vector.foreachActive { (slot, value) =>
      if (numbers(slot) != null) numbers(slot).setSafe(count, value)
      else if (value == 1) ones += slots.names(slot).getBytes(UTF_8)
      else if (value != 0) {
        throw new IllegalArgumentException(
          s"column '${column.name}' has the value $value in slot $slot (${slots.names(slot)}), which is binary by the " +
            "metadata of the column, expected 0 or 1")
      }
    }
    words.foreach { out =>
      val data = out.getDataVector.asInstanceOf[VarCharVector]
      writeList(out, ones.length)((position, i) => data.setSafe(position, ones(i)))
    }
    entries += numbers.length
  }

  /** The vector of a row, which has a size that is right and no value that is not finite. */
  private def present(column: RecordColumn, row: Row): Vector = row.get(column.index) match {
    case null => throw missing(column)
    case vector: Vector =>
      checkSize(column, vector)
      vector.foreachActive { (slot, value) =>
        RecordEncoder.expected(Required, value).foreach { expected =>
          throw new IllegalArgumentException(
            s"column '${column.name}' has the value $value in slot $slot${nameOf(column, slot)}, expected $expected; " +
              "Imputer fills missing values, and with inputCols instead of a vector they may be missing")
        }
      }
      vector
  }

  private def nameOf(column: RecordColumn, slot: Int): String = column.kind match {
    case SlotsColumn(slots) => s" (${slots.names(slot)})"
    case _ => ""
  }

  private def checkSize(column: RecordColumn, vector: Vector): Unit = {
    trainedSize.filter(_ != vector.size).foreach { trained =>
      throw new IllegalArgumentException(
        s"column '${column.name}' has a vector of size ${vector.size}, but the model was trained with size $trained")
    }
    if (size < 0) size = vector.size
    if (vector.size != size) throw RecordEncoder.differentSizes(column.name, size, vector.size)
  }

  private def writeIndices(out: ListVector, indices: Array[Int]): Unit = {
    val data = out.getDataVector.asInstanceOf[IntVector]
    writeList(out, indices.length)((position, i) => data.setSafe(position, indices(i)))
  }

  private def writeValues(out: ListVector, values: Array[Double]): Unit = {
    val data = out.getDataVector.asInstanceOf[Float8Vector]
    writeList(out, values.length)((position, i) => data.setSafe(position, values(i)))
    entries += values.length
  }

  /** Writes the list of the present record; `set` writes item `i` at a position of the data. */
  private def writeList(out: ListVector, length: Int)(set: (Int, Int) => Unit): Unit = {
    val start = out.startNewValue(count)
    var i = 0
    while (i < length) {
      set(start + i, i)
      i += 1
    }
    out.endValue(count, length)
  }

  private def missing(column: RecordColumn): IllegalArgumentException =
    new IllegalArgumentException(
      s"column '${column.name}' has a null; remove such rows (na.drop), or fill them")
}

private[ml] object RecordEncoder {
  private val SecondsOfDay = 86400.0

  /**
   * Returns the value of a column of numbers, booleans or times, as the program reads them in files: times are seconds since
   * 1970, and durations are seconds. A time without a zone is one of UTC.
   */
  def number(value: Any): Double = value match {
    case number: java.lang.Number => number.doubleValue
    case flag: java.lang.Boolean => if (flag) 1.0 else 0.0
    case day: java.sql.Date => day.toLocalDate.toEpochDay * SecondsOfDay
    case day: LocalDate => day.toEpochDay * SecondsOfDay
    case time: java.sql.Timestamp => number(time.toInstant)
    case time: LocalDateTime => number(time.toInstant(ZoneOffset.UTC))
    case time: Instant => time.getEpochSecond + time.getNano / 1e9
    case length: Duration => length.getSeconds + length.getNano / 1e9
  }

  /** What a rule expects instead of a number; none if the number is right. */
  def expected(rule: ValueRule, number: Double): Option[String] = {
    // The program computes with 32 bits.
    val isFinite = math.abs(number) <= Float.MaxValue
    rule match {
      case Optional if isFinite || number.isNaN => None
      case Optional => Some("a finite number of at most 3.4e38, or null")
      case _ if !isFinite => Some("a finite number of at most 3.4e38")
      case Weight if number < 0 => Some("a number of 0 or more")
      case TwoClasses if number != 1 && number != 0 && number != -1 =>
        Some("a label of two classes: 0 and 1, or -1 and 1; softmax takes more")
      case Classes if math.abs(number) > MaxClass || number != math.rint(number) =>
        Some("the number of a class: a whole number")
      case Required | Weight | TwoClasses | Classes => None
    }
  }

  /** Whole numbers up to it are exact in 32 bits. */
  private val MaxClass = (1 << 24) - 1

  def differentSizes(column: String, one: Int, other: Int): IllegalArgumentException =
    new IllegalArgumentException(
      s"column '$column' has vectors of size $one and of size $other; all vectors must have one size")
}
