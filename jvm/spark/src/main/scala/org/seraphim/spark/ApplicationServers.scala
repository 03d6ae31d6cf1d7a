package org.seraphim.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.time.Duration

import org.apache.spark.SparkContext

/** The parameter servers of an application: those that the plugin has started, or those of `spark.seraphim.master`. */
private[spark] final case class ApplicationServers(address: String, secret: String, startedByPlugin: Option[Int]) {
  override def toString: String = s"the servers of the master at $address"
}

private[spark] object ApplicationServers {
  /** How long one waits until the servers that the plugin starts are there, and between two looks. */
  val StartLimit: Duration = Duration.ofSeconds(60)
  val StartPause: Duration = Duration.ofMillis(100)

  def of(context: SparkContext, conf: SeraphimConf): Option[ApplicationServers] = conf.master match {
    case Some(address) => Some(ApplicationServers(address, conf.tokenFile.fold("")(readSecret), None))
    case None => SeraphimPlugin.serviceOf(context).map { service =>
      ApplicationServers(service.address, service.secret, Some(service.servers))
    }
  }

  private def readSecret(file: String): String = new String(Files.readAllBytes(Paths.get(file)), UTF_8).trim
}
