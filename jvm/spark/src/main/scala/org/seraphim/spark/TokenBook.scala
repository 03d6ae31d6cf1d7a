package org.seraphim.spark

import scala.collection.mutable

/**
 * Gives out the tokens of evaluations, which increase. Closing a token at the servers closes all smaller ones, so that
 * a token is closed when no smaller one is in use. Late attempts may push until then, so the book keeps the rows to
 * which they push. Threads share it.
 */
private[spark] final class TokenBook {
  private val unclosed = mutable.Map[Long, Seq[Row]]()
  private val open = mutable.SortedSet[Long]()
  private var last = 0L
  private var closed = 0L

  def next(): Long = synchronized {
    last += 1
    open += last
    last
  }

  /**
   * Ends the use of a token, whose attempts push to `targets`. Returns the largest token that the caller must close
   * now, if there is one.
   */
  def finish(token: Long, targets: Seq[Row]): Option[Long] = synchronized {
    open -= token
    unclosed(token) = targets
    val largest = open.headOption.fold(last)(_ - 1)
    if (largest > closed) {
      closed = largest
      unclosed --= unclosed.keys.filter(_ <= largest).toList
      Some(largest)
    } else {
      None
    }
  }
}
