package org.seraphim.spark.ml

import java.util.concurrent.locks.LockSupport

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.SparkContext

import org.seraphim.spark.{ApplicationServers, SecretFile, SeraphimConf}

/** A cluster that runs already, on whose servers a training has its parameters. */
private[ml] final case class TrainingCluster(address: String, secret: String, servers: Int) {
  override def toString: String = s"$servers servers of the master at $address"
}

private[ml] object TrainingCluster {
  /**
   * The cluster with the servers of the application, if it has any.
   *
   * In local mode the plugin starts a parameter service, which takes no jobs.
   */
  def of(context: SparkContext, conf: SeraphimConf): Option[TrainingCluster] =
    ApplicationServers.of(context, conf).filter(_.startedByPlugin.isEmpty || !context.isLocal).map { found =>
      TrainingCluster(found.address, found.secret, found.startedByPlugin match {
        case Some(wanted) => waitForServers(conf, found, wanted)
        case None => serverCount(conf, found)
      })
    }

  /** Servers register while executors start. */
  private def waitForServers(conf: SeraphimConf, cluster: ApplicationServers, wanted: Int): Int = {
    val end = System.nanoTime() + ApplicationServers.StartLimit.toNanos
    var count = 0
    while (count < wanted) {
      count = serverCount(conf, cluster)
      if (count < wanted) {
        if (System.nanoTime() > end) {
          throw new ProgramFailure(
            s"only $count of $wanted servers are there after ${ApplicationServers.StartLimit.getSeconds} s: " +
              "spark.seraphim.servers needs as many executors")
        }
        LockSupport.parkNanos(ApplicationServers.StartPause.toNanos)
      }
    }
    count
  }

  private def serverCount(conf: SeraphimConf, cluster: ApplicationServers): Int = {
    val file = new SecretFile(cluster.secret)
    val text =
      try ProgramCommand.outputOf(conf.binary, Seq("status", "--json", "--master", cluster.address) ++ file.arguments)
      finally file.close()
    var servers = 0
    new ObjectMapper().readTree(text).path("members").forEach { one =>
      if (one.path("member").path("kind").asText == "server") servers += 1
    }
    if (servers == 0 && cluster.startedByPlugin.isEmpty) {
      throw new ProgramFailure(
        s"the cluster of the master at ${cluster.address} has no servers: start some with `seraphim server`")
    }
    servers
  }
}
