package org.seraphim.spark

import java.nio.file.{Files, Paths}

import org.apache.spark.{SparkConf, SparkContext}

/** Starts Spark for a test. */
object TestSpark {
  def start(master: String, settings: (String, String)*): SparkContext = {
    val conf = new SparkConf()
      .setMaster(master)
      .setAppName("test")
      .set("spark.ui.enabled", "false")
      .set("spark.driver.host", "127.0.0.1")
      .set("spark.driver.bindAddress", "127.0.0.1")
    new SparkContext(settings.foldLeft(conf) { case (all, (key, value)) => all.set(key, value) })
  }

  /** Two executors in processes of their own. */
  def startCluster(settings: (String, String)*): SparkContext = {
    Option(System.getenv("SPARK_HOME")).foreach(home => Files.createDirectories(Paths.get(home, "jars")))
    val classes = "spark.executor.extraClassPath" -> System.getProperty("java.class.path")
    start("local-cluster[2,1,512]", classes +: ("spark.executor.memory" -> "512m") +: settings: _*)
  }
}
