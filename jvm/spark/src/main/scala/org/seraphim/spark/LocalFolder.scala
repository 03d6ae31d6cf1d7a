package org.seraphim.spark

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.SparkEnv

/**
 * Temporary folders on this machine, in the folders that Spark has for such files. Whoever makes one removes it. What is
 * left when this process ends, also when it is killed, a shell removes, which waits for the end of a pipe from it.
 */
private[spark] object LocalFolder {
  /** Makes a folder that only this user can read. */
  def create(prefix: String): Path =
    removedAtEnd(Files.createTempDirectory(parent(sys.env, ofSession), s"$prefix-"))

  /** Returns a file or folder, which does not outlive this process. */
  def removedAtEnd(path: Path): Path = synchronized {
    remover.write(s"$path\n".getBytes(UTF_8))
    remover.flush()
    path
  }

  /** Reads paths until this process ends, then removes them; a program that writes there ends at the same time. */
  private val Remover =
    """trap '' HUP INT TERM
      |all=
      |while IFS= read -r path; do
      |  all="$all$path
      |"
      |done
      |set -f
      |IFS='
      |'
      |for attempt in 1 2 3 4 5 6 7 8 9 10; do
      |  rm -rf -- $all && exit
      |  sleep 1
      |done
      |""".stripMargin

  private lazy val remover = new ProcessBuilder("sh", "-c", Remover).start().getOutputStream

  private def ofSession: Option[String] = Option(SparkEnv.get).flatMap(_.conf.getOption("spark.local.dir"))

  /** The first folder that the standalone worker, YARN or Kubernetes, or the settings of the session name. */
  private[spark] def parent(environment: Map[String, String], ofSession: Option[String]): Path = {
    val named = environment.get("SPARK_EXECUTOR_DIRS").map(_.split(File.pathSeparator)) ++
      (environment.get("LOCAL_DIRS") ++ environment.get("SPARK_LOCAL_DIRS") ++ ofSession).map(_.split(','))
    val folders = named.flatten.map(name => Paths.get(name.trim)).filter(folder => Files.isWritable(folder))
    folders.headOption.getOrElse(Paths.get(System.getProperty("java.io.tmpdir")))
  }
}
