package org.seraphim.spark

import scala.collection.mutable

/**
 * Gives out the tokens of evaluations, which increase. Closing a token at the servers closes all smaller ones, so that
 * a token is closed when no smaller one is in use. Threads share it.
 */
private[spark] final class TokenBook {
  private val open = mutable.SortedSet[Long]()
  private var last = 0L
  private var closed = 0L

  def next(): Long = synchronized {
    last += 1
    open += last
    last
  }

  /** Ends the use of a token. Returns the largest token that can be closed now, if there is one. */
  def finish(token: Long): Option[Long] = synchronized {
    open -= token
    val largest = open.headOption.fold(last)(_ - 1)
    if (largest > closed) {
      closed = largest
      Some(largest)
    } else {
      None
    }
  }
}
