package org.seraphim.spark

import java.util.concurrent.atomic.AtomicInteger

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

import org.seraphim.spark.Waiting.waitUntil

/** A server of the plugin is there again after its process has died. */
class LastingServerTest {
  /** An argument that no other process has. */
  private val Seconds = "98765"

  private def running(): Seq[ProcessHandle] = {
    val all = ProcessHandle.current.descendants.toArray.map(_.asInstanceOf[ProcessHandle]).toSeq
    all.filter(one => one.info.command.orElse("").endsWith("sleep") && one.isAlive)
      .filter(one => one.info.arguments.orElse(Array.empty[String]).contains(Seconds))
  }

  @Test def a_server_that_was_killed_is_started_again_until_it_is_closed(): Unit = {
    val starts = new AtomicInteger
    val server = new LastingServer(() => {
      // The second start fails, as without a master.
      if (starts.incrementAndGet() == 2) throw new IllegalStateException("no master")
      new ChildProcess(Seq("sleep", Seconds))
    })
    waitUntil("the server runs")(running().size == 1)
    val first = running().head
    first.destroyForcibly()
    waitUntil("another one runs", starts)(running().exists(_.pid != first.pid))
    assertEquals(3, starts.get)
    server.close()
    waitUntil("it has ended", running())(running().isEmpty)
  }
}
