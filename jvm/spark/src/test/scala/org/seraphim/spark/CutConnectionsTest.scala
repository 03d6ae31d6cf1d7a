package org.seraphim.spark

import java.time.Duration
import java.util.SplittableRandom

import breeze.optimize.{DiffFunction, LBFGS}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{Test, Timeout}

import org.seraphim.client.{ClientOptions, MatrixSpec, ProxiedSession, TestServers}
import org.seraphim.spark.ServerVectorSpace._

/** Connections that are cut at any byte of an answer do not change a bit of what an optimizer computes. It takes seconds for
  * each seed: `CUT_CONNECTION_SEEDS` says how many. */
@Timeout(600)
class CutConnectionsTest {
  import CutConnectionsTest._

  @Test def an_optimization_gives_the_same_bits_when_connections_are_cut(): Unit = {
    val servers = TestServers.start()
    try {
      val (expected, calm) = minimize(servers, None)
      for (seed <- 1 to SeedCount) {
        val (actual, connections) = minimize(servers, Some(seed.toLong))
        assertArrayEquals(expected, actual, s"seed $seed")
        assertTrue(connections > calm + 10, s"seed $seed: $connections connections")
      }
    } finally servers.close()
  }

  private def minimize(servers: TestServers, seed: Option[Long]): (Array[Double], Int) = {
    val options = ClientOptions.defaults().withSilenceLimit(Duration.ofSeconds(5))
    // Few rows, so that rows are given out again and again.
    val proxied = new ProxiedSession(servers, new MatrixSpec("vectors", 30, Dimension.toLong, 4), options)
    try {
      val pool = VectorPool.on(proxied.session, proxied.session.matrix("vectors"))
      val random = seed.map(new SplittableRandom(_))
      val h = pool.create(Array.tabulate(Dimension)(i => (1.0 + i % 97) / 97))
      val target = pool.create(Array.tabulate(Dimension)(i => (i % 13) * 1e-2))
      val objective = new DiffFunction[ServerVector] {
        override def calculate(w: ServerVector): (Double, ServerVector) = {
          random.foreach(r => proxied.cutAnswersAfter(r.nextInt(2), r.nextLong(4000)))
          val difference = w.minus(target)
          val gradient = difference.zip("mul", h)
          pool.evaluated(w, gradient)
          (0.5 * gradient.dot(difference), gradient)
        }
      }
      val x = new LBFGS[ServerVector](40, 5, 0.0).minimize(objective, pool.zeros())
      (x.pull(), proxied.connections)
    } finally proxied.close()
  }
}

object CutConnectionsTest {
  private val SeedCount = sys.env.get("CUT_CONNECTION_SEEDS").fold(2)(_.toInt)
  private val Dimension = 20000
}
