package org.seraphim.spark

import java.lang.ref.WeakReference

import scala.collection.mutable

/**
 * Rows by what they were computed from, so that the same computation gives the same row. A key names rows by their
 * tags. The last rows are kept even if no vector refers to them: a line search computes its last point twice. The lock
 * of the pool guards it.
 */
private[spark] final class RowMemo(capacity: Int) {
  private val recentLimit = math.min(RowMemo.RecentRows, capacity / RowMemo.RecentShare)
  private val rows = mutable.Map[Any, WeakReference[Row]]()
  private val keys = mutable.Map[Long, Any]()
  private val recent = mutable.Queue[Row]()

  /** The row that was computed for a key, if it is still in use. */
  def get(key: Any): Option[Row] = {
    val row = rows.get(key).flatMap(reference => Option(reference.get)).filterNot(_.slot.isFreed)
    row.foreach(keepRecent)
    row
  }

  /** The row of a key, computed if it is not there. */
  def getOrElse(key: Any)(compute: => Row): Row = get(key).getOrElse {
    val row = compute
    rows(key) = new WeakReference(row)
    keys(row.tag) = key
    keepRecent(row)
    row
  }

  /** What a row was computed from, if it is here. */
  def keyOf(row: Row): Option[Any] = keys.get(row.tag)

  private def keepRecent(row: Row): Unit = {
    recent.dequeueFirst(_ eq row)
    recent.enqueue(row)
    if (recent.size > recentLimit) recent.dequeue()
  }

  /** Lets go of rows that were only kept here. */
  def releaseRecent(): Unit = recent.clear()

  /** Removes the row of a slot. */
  def forget(slot: Slot): Unit =
    for (key <- keys.remove(slot.tag) if rows.get(key).forall(reference => isOf(slot, reference))) rows.remove(key)

  private def isOf(slot: Slot, reference: WeakReference[Row]): Boolean = Option(reference.get).forall(_.slot eq slot)
}

private object RowMemo {
  /** L-BFGS and OWL-QN compute at most 10 rows between the two times. */
  private val RecentRows = 12
  /** A small pool keeps at most this fraction (1/n) of its rows. */
  private val RecentShare = 4
}
