package org.seraphim.spark

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path, Paths}

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

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
}
