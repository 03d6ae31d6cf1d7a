package org.seraphim.spark

import org.seraphim.client.Write

/**
 * The content of a row of the pool. Every content has a tag of its own, and is written once: a row gets other values
 * only when nothing refers to its content any more. Therefore requests about it may be repeated.
 */
private[spark] final class Slot(val number: Int, val tag: Long) {

  /** The write that makes the content, if this process makes it. */
  @volatile var write: Option[Write] = None
  @volatile var isFreed = false

  /** Whether the content is the result of a closure of the program, so that nothing else shows what it equals. */
  @volatile var isOpaque = false

  /** The scope that frees the content at its end. */
  @volatile var scope: Option[Scope] = None

  /** Throws what prevented the write, once that is known. */
  def throwIfFailed(): Unit = write.foreach(_.throwIfFailed())
}

/** Refers to a content. The row is free when no vector refers to this object any more. */
private[spark] final class Row(val slot: Slot) {
  def tag: Long = slot.tag

  /** The number of the row in the matrix. */
  def number: Int = {
    if (slot.isFreed) throw new IllegalStateException(Scope.UseAfterEnd)
    slot.number
  }
}
