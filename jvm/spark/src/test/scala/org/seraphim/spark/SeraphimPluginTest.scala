package org.seraphim.spark

import java.nio.file.Paths

import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.SparkSession
import org.apache.spark.{SparkConf, SparkContext}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.{Test, Timeout}

import org.seraphim.client.TestServers
import org.seraphim.spark.ml.SeraphimLogisticRegression

@Timeout(120)
class SeraphimPluginTest {
  import SeraphimPluginTest._
  import Waiting.waitUntil

  @Test def servers_start_and_stop_with_an_application_in_local_mode(): Unit = {
    val before = services()
    val context = TestSpark.start("local[2]", settings(2): _*)
    try {
      val pool = VectorPool.open(context, 1000, 4)
      assertEquals(2, pool.session.laneCount)
      assertEquals(1000.0, pool.fill(1.0).dot(pool.fill(1.0)))
      assertTrue((services() -- before).nonEmpty)
      pool.close()
    } finally context.stop()
    waitUntil("no process is left", services() -- before)((services() -- before).isEmpty)
  }

  @Test def servers_start_on_executors_and_stop_with_the_application(): Unit = {
    val before = services()
    val cluster = new TestCluster
    try {
      val context = cluster.start(settings(2): _*)
      try {
        val pool = VectorPool.open(context, 1000, 8)
        assertEquals(2, pool.session.laneCount)
        val objective = new SparkObjective(context.parallelize(1 to 10, 3), pool)(
          (records, w, gradient) => records.map { record => gradient(0) += record; record * w(1) }.sum)
        val (loss, gradient) = objective.calculate(pool.fill(2.0))
        assertEquals((110.0, 55.0), (loss, gradient(0)))
        trainOnServers(context)
        pool.close()
      } finally context.stop()
    } finally cluster.close()
    waitUntil("no process is left", services() -- before)((services() -- before).isEmpty)
  }

  /** An Estimator with several workers has its parameters on the servers that have the vectors. */
  private def trainOnServers(context: SparkContext): Unit = {
    val session = SparkSession.builder().getOrCreate()
    val rows = (1 to 100).map(n => (n % 2.0, Vectors.dense(n % 2.0, 1.0)))
    val frame = session.createDataFrame(rows).toDF("label", "features")
    val model = new SeraphimLogisticRegression().setNumWorkers(2).fit(frame)
    assertEquals(100, model.transform(frame).filter("prediction = label").count())
    val service = SeraphimPlugin.serviceOf(context).get
    val secret = new SecretFile(service.secret)
    val command = Seq(TestServers.binaryOrSkip().toString, "status", "--master", service.address) ++ secret.arguments
    val status = try scala.sys.process.Process(command).!! finally secret.close()
    assertTrue(status.linesIterator.exists(line => line.contains("done") && line.contains("lr on worker://rows")), status)
  }

  @Test def servers_end_when_the_driver_is_killed(): Unit = {
    val before = services()
    val program = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val options = java.lang.management.ManagementFactory.getRuntimeMXBean.getInputArguments
      .toArray(Array.empty[String]).filter(_.startsWith("--add-opens"))
    val main = "org.seraphim.spark.DriverToKill"
    val command = Seq(program) ++ options ++ Seq("-cp", System.getProperty("java.class.path"), main)
    val process = new ProcessBuilder(command: _*).redirectErrorStream(true).start()
    val lines = scala.io.Source.fromInputStream(process.getInputStream).getLines()
    assertTrue(lines.exists(_.contains(DriverToKill.Ready)))
    assertTrue((services() -- before).nonEmpty)
    process.destroyForcibly()
    waitUntil("no process is left", services() -- before)((services() -- before).isEmpty)
  }

  @Test def an_existing_cluster_is_used(): Unit = {
    val servers = TestServers.start()
    val context = TestSpark.start("local[2]", "spark.seraphim.master" -> servers.address)
    try {
      val pool = VectorPool.open(context, 100, 2)
      assertEquals(servers.address, pool.session.handle.master)
      pool.close()
    } finally {
      context.stop()
      servers.close()
    }
  }

  @Test def settings_that_cannot_be_meant_are_refused(): Unit = {
    val wrongKey = new SparkConf(false).set("spark.seraphim.server", "2")
    val fault = assertThrows(classOf[IllegalArgumentException], () => SeraphimConf.of(wrongKey))
    assertTrue(fault.getMessage.contains("spark.seraphim.servers"), fault.getMessage)
    val negative = new SparkConf(false).set("spark.seraphim.servers", "-1")
    assertThrows(classOf[IllegalArgumentException], () => SeraphimConf.of(negative))
  }

  @Test def a_missing_program_and_missing_servers_are_clear_errors(): Unit = {
    val conf = SeraphimConf(None, None, 1, None, None, Some("/no/such/seraphim"))
    val fault = assertThrows(classOf[IllegalStateException], () => SeraphimService.local(conf))
    assertTrue(fault.getMessage.contains("spark.seraphim.binary"), fault.getMessage)
    val context = TestSpark.start("local[1]")
    try assertThrows(classOf[IllegalStateException], () => VectorPool.open(context, 10, 2))
    finally context.stop()
  }
}

object SeraphimPluginTest {
  def settings(servers: Int): Seq[(String, String)] = Seq(
    "spark.plugins" -> classOf[SeraphimPlugin].getName,
    "spark.seraphim.servers" -> servers.toString,
    "spark.seraphim.memory" -> "256m",
    "spark.seraphim.binary" -> TestServers.binaryOrSkip().toString)

  /** The processes of Seraphim on this machine. */
  private def services(): Set[Long] = {
    val name = TestServers.binaryOrSkip().toString
    ProcessHandle.allProcesses.filter(process => process.info.command.filter(_ == name).isPresent)
      .mapToLong(_.pid).toArray.toSet
  }
}

/** A driver that is killed. */
object DriverToKill {
  val Ready = "the servers are ready"

  def main(arguments: Array[String]): Unit = {
    val context: SparkContext = TestSpark.start("local[1]", SeraphimPluginTest.settings(1): _*)
    VectorPool.open(context, 10, 2)
    println(Ready)
    while (true) Thread.onSpinWait()
  }
}
