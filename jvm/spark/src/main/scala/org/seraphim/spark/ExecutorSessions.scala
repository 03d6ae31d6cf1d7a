package org.seraphim.spark

import java.util

import org.seraphim.client.{ParameterSession, ServerMatrix => ClientMatrix, SessionHandle}

/**
 * The sessions that this executor uses, one for each driver or pool, shared by its tasks. The least recently used are
 * disconnected when there are many: executors may outlive the pools of a driver.
 */
private[spark] object ExecutorSessions {
  private val MaxSessions = 8

  private val sessions = new util.LinkedHashMap[SessionHandle, ParameterSession](MaxSessions, 0.75f, true)

  def matrix(handle: SessionHandle, name: String): ClientMatrix = session(handle).matrix(name)

  private def session(handle: SessionHandle): ParameterSession = synchronized {
    val known = sessions.get(handle)
    if (known != null) known
    else {
      val attached = ParameterSession.attach(handle)
      sessions.put(handle, attached)
      if (sessions.size > MaxSessions) {
        val oldest = sessions.entrySet.iterator
        oldest.next().getValue.close()
        oldest.remove()
      }
      attached
    }
  }
}
