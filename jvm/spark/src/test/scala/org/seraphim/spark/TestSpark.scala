package org.seraphim.spark

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
}
