package org.seraphim.spark

import java.time.Duration
import java.util.concurrent.locks.LockSupport
import java.util.{Collections, Map => JMap}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.internal.Logging

/**
 * Starts parameter servers with a Spark application, and stops them with it: `spark.plugins` is
 * `org.seraphim.spark.SeraphimPlugin`. [[SeraphimConf]] has the settings.
 *
 * In local mode the servers are processes beside the driver. Otherwise the master is beside the driver, and the first
 * executors have a server each. With `spark.seraphim.master` nothing is started: an existing cluster is used. All
 * processes end with the process that started them, also when that is killed.
 */
final class SeraphimPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new SeraphimDriverPlugin
  override def executorPlugin(): ExecutorPlugin = new SeraphimExecutorPlugin
}

private[spark] object SeraphimPlugin {
  val MasterKey = "master"
  /** Spark hides values of keys with this word. */
  val SecretKey = "secret"

  private val services = mutable.WeakHashMap[SparkContext, SeraphimService]()

  def register(context: SparkContext, service: SeraphimService): Unit = synchronized(services.put(context, service))

  /** The service that the plugin has started for an application. */
  def serviceOf(context: SparkContext): Option[SeraphimService] = synchronized(services.get(context))
}

/** An executor asks whether it shall start a server. The answer is a `java.lang.Boolean`. */
private[spark] final case class ServerWanted(executor: String)

private[spark] final class SeraphimDriverPlugin extends DriverPlugin {
  private var conf: SeraphimConf = _
  private var service: Option[SeraphimService] = None
  private val withServer = mutable.Set[String]()

  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    SupportedVersions.check(context.version)
    conf = SeraphimConf.of(plugin.conf)
    if (conf.master.isDefined || conf.servers == 0) Collections.emptyMap[String, String]
    else {
      val started =
        if (context.isLocal) SeraphimService.local(conf) else SeraphimService.master(conf, plugin.hostname)
      service = Some(started)
      SeraphimPlugin.register(context, started)
      val extra = new java.util.HashMap[String, String]()
      if (!context.isLocal) {
        extra.put(SeraphimPlugin.MasterKey, started.address)
        extra.put(SeraphimPlugin.SecretKey, started.secret)
      }
      extra
    }
  }

  override def receive(message: Object): Object = message match {
    case ServerWanted(executor) => synchronized {
      val isWanted = withServer.size < conf.servers
      if (isWanted) withServer += executor
      java.lang.Boolean.valueOf(isWanted)
    }
    case other => throw new IllegalArgumentException(s"the plugin of Seraphim got an unknown message: $other")
  }

  override def shutdown(): Unit = service.foreach(_.close())
}

private[spark] final class SeraphimExecutorPlugin extends ExecutorPlugin {
  private var server: Option[LastingServer] = None

  override def init(plugin: PluginContext, extra: JMap[String, String]): Unit = {
    val master = extra.get(SeraphimPlugin.MasterKey)
    if (master != null && plugin.ask(ServerWanted(plugin.executorID)) == java.lang.Boolean.TRUE) {
      val conf = SeraphimConf.of(plugin.conf)
      val secret = extra.get(SeraphimPlugin.SecretKey)
      server = Some(new LastingServer(() => SeraphimService.server(conf, master, secret)))
    }
  }

  override def shutdown(): Unit = server.foreach(_.close())
}

/** A server that is started again when its process has died, until it is closed. */
private[spark] final class LastingServer(start: () => ChildProcess) extends AutoCloseable with Logging {
  import LastingServer._

  @volatile private var isClosed = false
  private var process = start()
  private val watcher = new Thread(() => watch(), "seraphim server")
  watcher.setDaemon(true)
  watcher.start()

  private def watch(): Unit = {
    var pause = LeastPause
    while (!isClosed) {
      LockSupport.parkNanos(pause.toNanos)
      if (!isRunning()) {
        pause = try {
          logWarning("the server of this executor has died, and is started again")
          restart()
          LeastPause
        } catch {
          case NonFatal(fault) =>
            logWarning(s"the server of this executor cannot be started again: ${fault.getMessage}")
            if (pause.multipliedBy(2).compareTo(LongestPause) < 0) pause.multipliedBy(2) else LongestPause
        }
      }
    }
  }

  private def isRunning(): Boolean = synchronized(isClosed || process.isAlive)

  private def restart(): Unit = {
    val next = start()
    synchronized {
      process.close()
      process = next
      if (isClosed) next.close()
    }
  }

  override def close(): Unit = synchronized {
    isClosed = true
    process.close()
    LockSupport.unpark(watcher)
  }
}

private object LastingServer {
  private val LeastPause = Duration.ofMillis(500)
  private val LongestPause = Duration.ofSeconds(30)
}
