package org.seraphim.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.time.Duration
import java.util.concurrent.locks.LockSupport

import org.apache.spark.SparkContext

import org.seraphim.client.{ClientOptions, RefusedException}

/** Opens pools on the servers of a Spark application. */
private[spark] object PoolOpener {
  /** How long a pool waits until the servers that the plugin starts are there. */
  private val ServersLimit = Duration.ofSeconds(60)
  private val ServersPause = Duration.ofMillis(100)

  def open(context: SparkContext, dimension: Long, capacity: Int): VectorPool = {
    SupportedVersions.check(context.version)
    val conf = SeraphimConf.of(context.getConf)
    val (master, secret, servers) = (conf.master, SeraphimPlugin.serviceOf(context)) match {
      case (Some(address), _) => (address, conf.tokenFile.fold(Array.emptyByteArray)(readSecret), 0)
      case (None, Some(service)) => (service.address, service.secret.getBytes(UTF_8), service.servers)
      case (None, None) => throw new IllegalStateException(
        "the application has no parameter servers: set spark.plugins=org.seraphim.spark.SeraphimPlugin and " +
          "spark.seraphim.servers, or spark.seraphim.master")
    }
    val limits = ClientOptions.defaults().withServers(servers)
    val options = conf.durability.fold(limits)(value => limits.withDurability(value))
    val end = System.nanoTime() + ServersLimit.toNanos
    var pool: Option[VectorPool] = None
    while (pool.isEmpty) {
      try pool = Some(VectorPool.open(master, dimension, capacity, secret, context.appName, options))
      catch {
        // Servers register while executors start.
        case _: RefusedException.Busy if System.nanoTime() < end => LockSupport.parkNanos(ServersPause.toNanos)
      }
    }
    pool.get
  }

  private def readSecret(file: String): Array[Byte] =
    new String(Files.readAllBytes(Paths.get(file)), UTF_8).trim.getBytes(UTF_8)
}
