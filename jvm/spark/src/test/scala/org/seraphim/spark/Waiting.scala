package org.seraphim.spark

import java.time.Duration

import org.junit.jupiter.api.Assertions.assertTrue

/** Waits for what other processes do. */
object Waiting {
  private val Limit = Duration.ofSeconds(30)
  private val PauseMs = 50L

  /** Waits until `condition` holds. A test that waits for too long fails with `what` it waits for, and the `state`. */
  def waitUntil(what: String, state: => Any = "")(condition: => Boolean): Unit = {
    val end = System.nanoTime() + Limit.toNanos
    while (!condition) {
      assertTrue(System.nanoTime() < end, s"$what: $state")
      Thread.sleep(PauseMs)
    }
  }
}
