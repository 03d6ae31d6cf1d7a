package org.seraphim.spark

import java.nio.file.{Files, Paths}
import java.util.Random

import org.apache.spark.{SparkContext, TaskContext}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}

import org.seraphim.client.TestServers

@Timeout(120)
class ServerMatrixTest {
  import ServerMatrixTest._

  private var servers: TestServers = _
  private var pool: VectorPool = _
  private var context: SparkContext = _

  @BeforeEach def start(): Unit = {
    servers = TestServers.start()
    pool = VectorPool.open(servers.address, Columns, capacity = 40)
  }

  @AfterEach def stop(): Unit = {
    if (context != null) context.stop()
    if (pool != null) pool.close()
    if (servers != null) servers.close()
  }

  private def random(seed: Long): Array[Array[Double]] = {
    val source = new Random(seed)
    Array.fill(Rows)(source.doubles(Columns.toLong).toArray)
  }

  private def assertSame(expected: Array[Array[Double]], actual: ServerMatrix): Unit = {
    val found = actual.pull()
    assertEquals(expected.length, found.length)
    expected.zip(found).foreach { case (a, b) => assertArrayEquals(a, b, Tolerance) }
  }

  private def each(a: Array[Array[Double]], b: Array[Array[Double]])(f: (Double, Double) => Double) =
    a.zip(b).map { case (x, y) => x.zip(y).map { case (p, q) => f(p, q) } }

  @Test def operations_are_those_of_arrays(): Unit = {
    val (a, b) = (random(1), random(2))
    val (x, y) = (ServerMatrix.create(pool, a), ServerMatrix.create(pool, b))
    assertSame(a, x)
    assertSame(each(a, b)((p, q) => p + 2 * q), x.plus(2, y))
    assertSame(each(a, b)((p, q) => p - q), x.minus(y))
    assertSame(a.map(_.map(_ * 3)), x.times(3))
    assertSame(a.map(_.map(math.exp)), x.map("exp"))
    val z = x.copy().scale(2).axpy(-1, y).add(x)
    assertSame(each(a, b)((p, q) => 3 * p - q), z)
    assertSame(a, x)
    assertSame(Array.tabulate(Rows)(r => a(r).map(_ * r)), x.copy().scaleRows(Array.tabulate(Rows)(_.toDouble)))
    val products = each(a, b)(_ * _).map(_.sum)
    assertEquals(products.sum, x.dot(y), Tolerance * Columns)
    assertEquals(math.sqrt(each(a, a)(_ * _).map(_.sum).sum), x.norm(), Tolerance * Columns)
    val withOne = a.map(row => row.zip(b(1)).map { case (p, q) => p * q }.sum)
    assertArrayEquals(withOne, x.multiply(y(1)), Tolerance * Columns)
    assertSame(Array.fill(Rows)(Array.fill(Columns)(0.5)), x.fill(0.5))
    assertSame(Array.fill(2)(new Array[Double](Columns)), ServerMatrix.zeros(pool, 2))
  }

  @Test def matrices_that_do_not_fit_are_errors(): Unit = {
    val x = ServerMatrix.zeros(pool, Rows)
    def reason(work: => Any): String = assertThrows(classOf[IllegalArgumentException], () => work).getMessage
    assertTrue(reason(x.add(ServerMatrix.zeros(pool, 2))).contains("2 rows for a matrix of 4 rows"))
    assertTrue(reason(x.push(Array.fill(Rows)(new Array[Double](3)))).contains("3 values"))
    assertTrue(reason(ServerMatrix.zeros(pool, 0)).contains("a matrix of 0 rows"))
    val other = VectorPool.open(servers.address, Columns, capacity = 8)
    try assertTrue(reason(x.dot(ServerMatrix.create(other, random(3)))).contains("different pools"))
    finally other.close()
  }

  @Test def clusters_are_found_with_centres_on_the_servers_whatever_spark_runs_again(): Unit = {
    context = TestSpark.start("local[2,4]")
    val source = new Random(5)
    val points = Seq.tabulate(400)(i => Array.tabulate(Columns)(c =>
      (if (c % Rows == i % Rows) 10.0 else 0.0) + source.nextGaussian()))
    val data = context.parallelize(points, 6).cache()
    // Each centre begins at a point of its own cluster.
    val centres = ServerMatrix.create(pool, points.take(Rows).toArray)
    val failures = Files.createTempDirectory("seraphim-test").toString
    for (iteration <- 1 to 3) pool.scope { scope =>
      val shared = centres.share()
      // The second half of the rows counts the points of each cluster.
      val sums = ServerMatrix.sum(data, pool, 2 * Rows) { (records, parts) =>
        assign(records, shared.pull(), parts)
        failOnce(failures, iteration)
      }
      val values = sums.pull()
      val counts = values.drop(Rows).map(_.head)
      assertArrayEquals(Array.fill(Rows)(100.0), counts)
      for (cluster <- 0 until Rows) {
        centres(cluster).assign(sums(cluster).scale(1 / counts(cluster)))
        scope.keep(centres(cluster))
      }
    }
    val found = centres.pull()
    for (cluster <- 0 until Rows; column <- 0 until Columns) {
      val expected = if (column % Rows == cluster) 10.0 else 0.0
      assertEquals(expected, found(cluster)(column), 0.5)
    }
    assertTrue(Files.list(Paths.get(failures)).count() >= 6, "attempts have failed")
  }
}

object ServerMatrixTest {
  private val Rows = 4
  private val Columns = 40
  private val Tolerance = 1e-9

  /** Adds each record to the sums of its nearest centre, and counts it. */
  private def assign(
      records: Iterator[Array[Double]], centres: Array[Array[Double]], parts: Array[Array[Double]]): Unit =
    records.foreach { record =>
      val distances = centres.map(_.zip(record).map { case (a, b) => (a - b) * (a - b) }.sum)
      val nearest = distances.indexOf(distances.min)
      record.indices.foreach(column => parts(nearest)(column) += record(column))
      parts(centres.length + nearest)(0) += 1
    }

  /** Fails the first attempt of each task. */
  private def failOnce(folder: String, iteration: Int): Unit = {
    val file = Paths.get(folder, s"$iteration-${TaskContext.getPartitionId()}")
    if (!Files.exists(file)) {
      Files.createFile(file)
      throw new IllegalStateException("the first attempt fails")
    }
  }
}
