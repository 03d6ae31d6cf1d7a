package org.seraphim.spark

import org.apache.spark.SparkConf

/**
 * The settings of the plugin.
 *
 *  - `spark.seraphim.master`: HOST:PORT of a cluster that runs already; nothing is started
 *  - `spark.seraphim.tokenFile`: the file with its shared secret, readable by the driver
 *  - `spark.seraphim.servers`: number of servers to start; 0 if it is missing
 *  - `spark.seraphim.durability`: what of the vectors outlives the loss of a server, as in `ClientOptions.withDurability`;
 *    `checkpoint` (nothing) if it is missing
 *  - `spark.seraphim.memory`: memory limit of each server, such as `10g`; the default is that of `seraphim server`
 *  - `spark.seraphim.binary`: the program `seraphim` on each machine; by default it is that of the jar
 *    `seraphim-program`, or found in the PATH
 */
private[spark] final case class SeraphimConf(
    master: Option[String],
    tokenFile: Option[String],
    servers: Int,
    memoryBytes: Option[Long],
    durability: Option[String],
    binary: Option[String])

private[spark] object SeraphimConf {
  val Known: Seq[String] = Seq("master", "tokenFile", "servers", "memory", "durability", "binary").map("spark.seraphim." + _)

  /** Reads the settings, and refuses what cannot be meant. */
  def of(conf: SparkConf): SeraphimConf = {
    conf.getAllWithPrefix("spark.seraphim.").map("spark.seraphim." + _._1).filterNot(Known.contains).foreach { key =>
      throw new IllegalArgumentException(s"the setting $key is unknown; known are ${Known.mkString(", ")}")
    }
    val servers = conf.getInt("spark.seraphim.servers", 0)
    if (servers < 0) {
      throw new IllegalArgumentException(s"spark.seraphim.servers is $servers, expected 0 or more")
    }
    val memory = conf.getOption("spark.seraphim.memory").map(_ => conf.getSizeAsBytes("spark.seraphim.memory"))
    SeraphimConf(
      conf.getOption("spark.seraphim.master"),
      conf.getOption("spark.seraphim.tokenFile"),
      servers,
      memory,
      conf.getOption("spark.seraphim.durability"),
      conf.getOption("spark.seraphim.binary"))
  }
}
