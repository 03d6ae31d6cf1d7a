package org.seraphim.spark

import java.util.Random

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}

import org.seraphim.client.{FunctionCall, RefusedException, TestServers}

@Timeout(60)
class ServerVectorTest {
  import ServerVectorTest._

  private var servers: TestServers = _
  private var pool: VectorPool = _

  @BeforeEach def start(): Unit = {
    servers = TestServers.start()
    pool = VectorPool.open(servers.address, Dimension, capacity = 8)
  }

  @AfterEach def stop(): Unit = {
    if (pool != null) pool.close()
    if (servers != null) servers.close()
  }

  private def random(seed: Long): Array[Double] = new Random(seed).doubles(Dimension.toLong).toArray

  @Test def operations_are_those_of_arrays(): Unit = {
    val (a, b) = (random(1), random(2))
    val (x, y) = (pool.create(a), pool.create(b))
    assertArrayEquals(a, x.pull())
    assertArrayEquals(Array.fill(Dimension)(0.5), pool.fill(0.5).pull())
    assertArrayEquals(new Array[Double](Dimension), pool.zeros().pull())
    val z = x.copy().scale(2).axpy(-3, y).add(x)
    val expected = Array.tabulate(Dimension)(i => 3 * a(i) - 3 * b(i))
    assertArrayEquals(expected, z.pull(), Tolerance)
    assertArrayEquals(a, x.pull())
    assertEquals(dot(expected, b), z.dot(y), Tolerance * Dimension)
    assertEquals(math.sqrt(dot(a, a)), x.norm(), Tolerance * Dimension)
    assertArrayEquals(a.map(math.exp), x.map("exp").pull(), Tolerance)
    assertArrayEquals(a.map(_ * -2), x.map("scalar_mul", -2.0).pull())
    val clipped = x.map("clip", new FunctionCall.Argument().number(0.25).number(0.5)).pull()
    assertArrayEquals(a.map(value => math.min(math.max(value, 0.25), 0.5)), clipped)
    assertArrayEquals(a.zip(b).map { case (p, q) => p * q }, x.zip("mul", y).pull())
    assertEquals(a(3), x(3))
    assertEquals(a.sum, x.reduce("sum"), Tolerance * Dimension)
    assertThrows(classOf[IllegalArgumentException], () => x.reduce("max"))
  }

  @Test def an_inner_product_of_combinations_is_that_of_their_values(): Unit = {
    val (x, y) = (pool.create(random(3)), pool.create(random(4)))
    val combined = x.times(0.3).axpy(-1.7, y)
    val other = y.times(2).axpy(0.1, x)
    assertEquals(dot(combined.pull(), other.pull()), combined.dot(other), Tolerance * Dimension)
  }

  @Test def writes_and_known_products_need_no_wait(): Unit = {
    val (x, y) = (pool.create(random(5)), pool.create(random(6)))
    val before = pool.waits
    for (i <- 0 until 100) {
      val z = x.copy().axpy(i.toDouble, y).scale(0.5)
      z.dot(x)
      z.dot(z)
    }
    assertEquals(before + 1, pool.waits)
  }

  @Test def vectors_are_equal_if_they_were_computed_in_the_same_way(): Unit = {
    val (x, y) = (pool.create(random(7)), pool.create(random(8)))
    val first = x.plus(0.25, y)
    assertTrue(first == x.plus(0.25, y))
    first.pull()
    assertTrue(first == x.plus(0.25, y))
    assertTrue(first != x.plus(0.5, y))
    assertTrue(first == first.copy())
    assertTrue(x.plus(0.0, y) == x)
    val changed = first.copy().scale(2)
    assertTrue(first != changed)
  }

  @Test def the_end_of_a_scope_frees_what_is_not_kept(): Unit = {
    val outside = pool.create(random(9))
    val used = pool.used
    var temporary: ServerVector = null
    val kept = pool.scope { scope =>
      temporary = outside.map("exp")
      val inner = pool.scope(nested => nested.keep(temporary.map("sqrt")))
      outside.axpy(1.0, inner)
      scope.keep(outside.map("negate"))
    }
    outside.row()
    assertThrows(classOf[IllegalStateException], () => temporary.pull())
    assertThrows(classOf[IllegalStateException], () => outside.dot(temporary))
    assertThrows(classOf[IllegalStateException], () => temporary.scale(2))
    val expected = random(9).map(value => value + math.sqrt(math.exp(value)))
    assertArrayEquals(expected, outside.pull(), Tolerance)
    assertArrayEquals(expected.map(-_), kept.pull(), Tolerance)
    assertTrue(pool.used <= used + 3, s"${pool.used} vectors are in use")
  }

  @Test def vectors_without_a_scope_are_freed_when_nothing_refers_to_them(): Unit = {
    val sum = pool.zeros()
    for (i <- 1 to 100) sum.add(pool.fill(i.toDouble)).row()
    assertEquals(5050.0, sum(0))
  }

  @Test def a_full_pool_says_what_to_do(): Unit = {
    val all = (1 to 8).map(i => pool.fill(i.toDouble))
    val fault = assertThrows(classOf[PoolFullException], () => pool.fill(9.0))
    assertTrue(fault.getMessage.contains("capacity"), fault.getMessage)
    assertEquals(36.0, all.map(_.apply(0)).sum)
  }

  @Test def vectors_of_another_session_are_refused(): Unit = {
    val other = VectorPool.open(servers.address, Dimension, capacity = 2)
    try {
      val fault = assertThrows(classOf[IllegalArgumentException], () => pool.fill(1).dot(other.fill(1)))
      assertTrue(fault.getMessage.contains("different pools"), fault.getMessage)
    } finally other.close()
  }

  @Test def a_pool_beyond_the_memory_of_the_servers_is_refused_with_the_amounts(): Unit = {
    val small = TestServers.start("--memory-limit", "64M")
    try {
      val fault = assertThrows(classOf[RefusedException.TooLarge], () => VectorPool.open(small.address, 1000000L))
      assertTrue(fault.getMessage.contains("bytes"), fault.getMessage)
    } finally small.close()
  }

  @Test def a_function_that_fails_is_an_error_and_changes_nothing(): Unit = {
    val x = pool.fill(-1.0)
    assertThrows(classOf[RefusedException.FunctionFailed], () => x.map("log"))
    assertEquals(-1.0, x(Dimension - 1))
    val huge = pool.fill(1e308).times(1e10)
    assertThrows(classOf[RefusedException.FunctionFailed], () => huge.pull())
    assertEquals(-1.0, x(0))
  }

  @Test def a_closed_pool_is_an_error(): Unit = {
    val x = pool.fill(1.0)
    pool.close()
    assertThrows(classOf[IllegalStateException], () => x.pull())
    pool = null
  }

  @Test def closures_run_in_the_driver(): Unit = {
    val (a, b) = (random(10), random(11))
    val sums = VectorChunks.zip(pool.create(a), pool.create(b))((i, x, y) => i + x * y)
    assertArrayEquals(Array.tabulate(Dimension)(i => i + a(i) * b(i)), sums.pull())
  }
}

object ServerVectorTest {
  private val Dimension = 5000
  /** Combinations add the same terms as arrays in another order. */
  private val Tolerance = 1e-13

  private def dot(a: Array[Double], b: Array[Double]): Double = a.indices.map(i => a(i) * b(i)).sum
}
