package org.seraphim.spark

import org.seraphim.client.{ServerMatrix => ClientMatrix, SessionHandle}

/**
 * What executors need to read a vector, or to add to it. It does not own the vector: the driver keeps a
 * [[ServerVector]] as long as tasks use this. It contains the shared secret of the service, which `toString` hides.
 */
final case class SharedVector private[spark] (
    private val session: SessionHandle,
    private val matrix: String,
    row: Int) {

  /** The matrix of the pool, through the session of this process. */
  private[spark] def serverMatrix: ClientMatrix = ExecutorSessions.matrix(session, matrix)

  /** Reads all values; at most 2^31 - 1. */
  def pull(): Array[Double] = serverMatrix.pull(row)

  override def toString: String = s"SharedVector(row $row of $session)"
}
