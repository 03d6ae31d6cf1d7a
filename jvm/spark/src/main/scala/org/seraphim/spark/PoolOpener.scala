package org.seraphim.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.locks.LockSupport

import org.apache.spark.SparkContext

import org.seraphim.client.{ClientOptions, RefusedException}

/** Opens pools on the servers of a Spark application. */
private[spark] object PoolOpener {
  def open(context: SparkContext, dimension: Long, capacity: Int): VectorPool = {
    SupportedVersions.check(context.version)
    val conf = SeraphimConf.of(context.getConf)
    val servers = ApplicationServers.of(context, conf).getOrElse(throw new IllegalStateException(
      "the application has no parameter servers: set spark.plugins=org.seraphim.spark.SeraphimPlugin and " +
        "spark.seraphim.servers, or spark.seraphim.master"))
    val secret = servers.secret.getBytes(UTF_8)
    // 0: all servers of the cluster.
    val limits = ClientOptions.defaults().withServers(servers.startedByPlugin.getOrElse(0))
    val options = conf.durability.fold(limits)(value => limits.withDurability(value))
    val end = System.nanoTime() + ApplicationServers.StartLimit.toNanos
    var pool: Option[VectorPool] = None
    while (pool.isEmpty) {
      try pool = Some(VectorPool.open(servers.address, dimension, capacity, secret, context.appName, options))
      catch {
        // Servers register while executors start.
        case _: RefusedException.Busy if System.nanoTime() < end =>
          LockSupport.parkNanos(ApplicationServers.StartPause.toNanos)
      }
    }
    pool.get
  }
}
