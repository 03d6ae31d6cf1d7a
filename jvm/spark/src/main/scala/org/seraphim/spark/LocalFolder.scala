package org.seraphim.spark

import java.io.File
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.SparkEnv

/**
 * Temporary folders on this machine, in the folders that Spark has for such files. A cluster removes those of an
 * executor that was killed, when the application ends.
 */
private[spark] object LocalFolder {
  /** Makes a folder that only this user can read. */
  def create(prefix: String): Path = Files.createTempDirectory(parent(sys.env, ofSession), s"$prefix-")

  private def ofSession: Option[String] = Option(SparkEnv.get).flatMap(_.conf.getOption("spark.local.dir"))

  /** The first folder that the standalone worker, YARN or Kubernetes, or the settings of the session name. */
  private[spark] def parent(environment: Map[String, String], ofSession: Option[String]): Path = {
    val named = environment.get("SPARK_EXECUTOR_DIRS").map(_.split(File.pathSeparator)) ++
      (environment.get("LOCAL_DIRS") ++ environment.get("SPARK_LOCAL_DIRS") ++ ofSession).map(_.split(','))
    val folders = named.flatten.map(name => Paths.get(name.trim)).filter(folder => Files.isWritable(folder))
    folders.headOption.getOrElse(Paths.get(System.getProperty("java.io.tmpdir")))
  }
}
