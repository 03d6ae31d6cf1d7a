package org.seraphim.spark

import java.lang.ref.{PhantomReference, ReferenceQueue, WeakReference}
import java.time.Duration

import scala.collection.mutable

import org.seraphim.client.{RefusedException, ServerMatrix => ClientMatrix, Write}

/**
 * Gives out the rows of the matrix of a pool. A row comes back when its scope ends, or when the garbage collector finds
 * that no vector refers to it. It is given out again when all writes that were sent before are answered, because a
 * write that is sent again must find the rows as they were. When no row is free, `onFull` lets go of rows that were
 * only kept for speed. The lock of the pool guards it.
 */
private[spark] final class RowStore(matrix: ClientMatrix, onFreed: Slot => Unit, onFull: () => Unit) {
  import RowStore._

  private val free = mutable.Queue[Int]() ++= (0 until matrix.rows)
  /** Freed rows, each with the number of writes that were sent before: it is free when these are answered. */
  private val freed = mutable.Queue[(Int, Long)]()
  private val underWay = mutable.Queue[Write]()
  private var sentCount = 0L
  private val queue = new ReferenceQueue[AnyRef]()
  private val references = mutable.Set[SlotReference]()
  private val live = mutable.LinkedHashMap[Long, WeakReference[Row]]()
  private var lastTag = 0L

  /** Number of rows that are in use. */
  def used: Int = {
    collect()
    matrix.rows - free.size - freed.size
  }

  /** The contents to which something refers, the oldest first. */
  def rows: Iterator[Row] = live.valuesIterator.flatMap(reference => Option(reference.get))

  /** A row for a new content, freed at the end of `scope` or when nothing refers to it. */
  def take(scope: Option[Scope]): Row = {
    if (free.isEmpty) collect()
    if (free.isEmpty && freed.size > FewRows) settle()
    if (free.isEmpty) collectGarbage()
    if (free.isEmpty) {
      onFull()
      collectGarbage()
    }
    if (free.isEmpty) throw new PoolFullException(matrix.rows, matrix.columns)
    lastTag += 1
    val slot = new Slot(free.dequeue(), lastTag)
    slot.scope = scope
    val row = new Row(slot)
    references += new SlotReference(row, queue)
    live(slot.tag) = new WeakReference(row)
    scope.foreach(_.add(slot))
    row
  }

  /** Remembers a write that was sent. */
  def sent(write: Write): Unit = {
    dropAnswered()
    underWay.enqueue(write)
    sentCount += 1
  }

  private def dropAnswered(): Unit = while (underWay.nonEmpty && underWay.head.isDone) underWay.dequeue()

  /** Waits for all writes that are under way. A refused write is an error of those who read its row. */
  def flush(): Unit = {
    val writes = underWay.dequeueAll(_ => true)
    try if (writes.exists(!_.isDone)) matrix.await(java.util.Arrays.asList(writes.toSeq: _*))
    catch {
      case _: RefusedException => ()
    }
  }

  def release(slot: Slot): Unit = if (!slot.isFreed) {
    slot.isFreed = true
    freed.enqueue((slot.number, sentCount))
    live.remove(slot.tag)
    onFreed(slot)
  }

  /** Waits until all freed rows can be given out again. */
  private def settle(): Unit = {
    if (freed.nonEmpty) flush()
    giveOut()
  }

  /** Lets freed rows be given out again when all writes before them are answered. */
  private def giveOut(): Unit = {
    dropAnswered()
    val answered = sentCount - underWay.size
    while (freed.nonEmpty && freed.head._2 <= answered) free.enqueue(freed.dequeue()._1)
  }

  private def collect(): Unit = {
    var reference = queue.poll()
    while (reference != null) {
      reclaim(reference)
      reference = queue.poll()
    }
    giveOut()
  }

  private def reclaim(reference: java.lang.ref.Reference[_]): Unit = reference match {
    case own: SlotReference =>
      references -= own
      release(own.slot)
    case _ => ()
  }

  /**
   * Asks the garbage collector for rows to which nothing refers. It is done when it has found an object that is made
   * for this purpose.
   */
  private def collectGarbage(): Unit = {
    val end = System.nanoTime() + GarbageLimit.toNanos
    val probe = new PhantomReference[AnyRef](new Object, queue)
    System.gc()
    var isDone = false
    while (!isDone && System.nanoTime() < end) {
      val reference = queue.remove(GarbagePauseMs)
      if (reference eq probe) isDone = true else if (reference != null) reclaim(reference)
    }
    // Other references of the same collection may follow.
    if (free.isEmpty && freed.isEmpty) Option(queue.remove(GarbagePauseMs)).foreach(reclaim)
    collect()
    if (free.isEmpty) settle()
  }
}

private[spark] object RowStore {
  /** How long a full pool waits for the garbage collector. */
  private val GarbageLimit = Duration.ofSeconds(10)
  private val GarbagePauseMs = 50L
  /** For so few freed rows nobody waits, because the garbage collector is likely to find more that are free at once. */
  private val FewRows = 4

  private final class SlotReference(row: Row, queue: ReferenceQueue[AnyRef])
      extends PhantomReference[Row](row, queue) {
    val slot: Slot = row.slot
  }
}

/** All rows of a pool are in use. */
final class PoolFullException(rows: Int, columns: Long)
    extends RuntimeException(
      s"all $rows vectors of the pool are in use, each with $columns values (${columns * 8} bytes on the servers): " +
        "end scopes earlier, let go of vectors, or create the pool with more vectors (VectorPool.open, capacity)")
