package org.seraphim.spark

import java.io.{BufferedReader, InputStreamReader}
import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import org.apache.spark.SparkContext

/**
 * A standalone cluster of Spark: a master and two workers as processes, with addresses that differ, because Spark runs
 * no speculative attempt at the address of the first one.
 */
final class TestCluster extends AutoCloseable {
  private val classes = System.getProperty("java.class.path")
  private val home = Files.createDirectories(Paths.get("target", "spark-home", "jars")).getParent.toAbsolutePath
  private val master = launch("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
  private val address = readAddress(master)
  private val workers = Seq("127.0.0.2", "127.0.0.3").map { host =>
    launch("worker.Worker", "--host", host, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "512m",
      "--work-dir", home.resolve("work").toString, address)
  }

  /** Connects to the cluster when both workers are there. */
  def start(settings: (String, String)*): SparkContext = {
    val own = Seq(
      "spark.executor.extraClassPath" -> classes,
      "spark.executor.memory" -> "512m",
      "spark.scheduler.minRegisteredResourcesRatio" -> "1.0",
      "spark.cores.max" -> "2")
    TestSpark.start(address, own ++ settings: _*)
  }

  private def launch(name: String, arguments: String*): Process = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    // The settings of Spark print the address of the master, those of the tests do not.
    val logging = "-Dlog4j2.configurationFile=classpath:org/apache/spark/log4j2-defaults.properties"
    val opens = Seq("java.nio", "sun.nio.ch", "java.lang").flatMap(p => Seq("--add-opens", s"java.base/$p=ALL-UNNAMED"))
    val command = (Seq(java, "-Xmx256m", logging) ++ opens ++ Seq("-cp", classes, s"org.apache.spark.deploy.$name")) ++
      arguments
    val builder = new ProcessBuilder(command: _*).redirectErrorStream(true)
    builder.environment.put("SPARK_HOME", home.toString)
    builder.environment.remove("SPARK_LOCAL_IP")
    val process = builder.start()
    Runtime.getRuntime.addShutdownHook(new Thread(() => process.destroyForcibly()))
    process
  }

  private def readAddress(process: Process): String = {
    var isFound = false
    val limit = new Thread(() => if (!process.waitFor(30, TimeUnit.SECONDS) && !isFound) process.destroyForcibly())
    limit.setDaemon(true)
    limit.start()
    val out = new BufferedReader(new InputStreamReader(process.getInputStream))
    val lines = Iterator.continually(out.readLine()).takeWhile(_ != null)
    val found = lines.flatMap(line => "spark://[0-9.:]+".r.findFirstIn(line)).take(1).toList
    isFound = found.nonEmpty
    drain(out)
    found.headOption.getOrElse(throw new IllegalStateException("the master of Spark has printed no address"))
  }

  private def drain(out: BufferedReader): Unit = {
    // The stream ends with the process, perhaps with an IOException.
    val thread = new Thread(() => scala.util.Try(while (out.readLine() != null) {}))
    thread.setDaemon(true)
    thread.start()
  }

  workers.foreach(worker => drain(new BufferedReader(new InputStreamReader(worker.getInputStream))))

  override def close(): Unit = (workers :+ master).foreach { process =>
    process.destroy()
    if (!process.waitFor(10, TimeUnit.SECONDS)) process.destroyForcibly()
  }
}
