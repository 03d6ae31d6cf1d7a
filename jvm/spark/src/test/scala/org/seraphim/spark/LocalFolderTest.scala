package org.seraphim.spark

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path, Paths}

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

import org.seraphim.spark.Waiting.waitUntil

/** Where temporary files of this machine go. */
class LocalFolderTest {
  @TempDir var folder: Path = _

  private def parent(environment: (String, String)*): Path = LocalFolder.parent(environment.toMap, None)

  @Test def it_is_among_the_folders_that_the_cluster_names(): Unit = {
    val (one, other) = (folder.toString, Files.createDirectory(folder.resolve("other")).toString)
    assertEquals(folder, parent("SPARK_EXECUTOR_DIRS" -> s"$one:$other", "LOCAL_DIRS" -> other))
    assertEquals(folder, parent("LOCAL_DIRS" -> s"/nowhere,$one"))
    assertEquals(folder, LocalFolder.parent(Map.empty, Some(one)))
    val ofSystem = Paths.get(System.getProperty("java.io.tmpdir"))
    assertEquals(ofSystem, parent())
    assertEquals(ofSystem, parent("LOCAL_DIRS" -> "/nowhere"))
  }

  @Test def only_its_user_can_read_it(): Unit = {
    val made = LocalFolder.create("seraphim-test")
    try assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(made)))
    finally Files.delete(made)
  }

  @Test def a_process_that_is_killed_leaves_none(): Unit = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val main = Seq(java, "-cp", System.getProperty("java.class.path"), "org.seraphim.spark.MakesFolder")
    val process = new ProcessBuilder(main: _*).start()
    val made = Paths.get(scala.io.Source.fromInputStream(process.getInputStream).getLines().next())
    try {
      Files.write(made.resolve("rows"), Array[Byte](1))
      process.destroyForcibly()
      waitUntil("the folder is removed", made)(!Files.exists(made))
    } finally process.destroyForcibly()
  }
}

/** Prints the folder that it has made, and waits. */
object MakesFolder {
  def main(arguments: Array[String]): Unit = {
    println(LocalFolder.create("seraphim-test"))
    Thread.sleep(60000)
  }
}
