package org.seraphim.spark

import java.net.URLClassLoader
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}

import org.junit.jupiter.api.Assertions.{assertEquals, assertTrue}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The program in a jar. */
class BundledProgramTest {
  @TempDir var folder: Path = _

  /** The program of a jar that has a script for `linux-x86_64`. */
  private def program(platform: String): BundledProgram = {
    val of = Files.createDirectories(folder.resolve("org/seraphim/program/linux-x86_64"))
    Files.write(of.resolve("seraphim"), "#!/bin/sh\necho it runs\n".getBytes)
    new BundledProgram(new URLClassLoader(Array(folder.toUri.toURL), null), platform)
  }

  private def run(file: Path): String = {
    val process = new ProcessBuilder(file.toString).start()
    new String(process.getInputStream.readAllBytes())
  }

  @Test def it_is_written_once_as_a_file_that_runs(): Unit = {
    val program = this.program("linux-x86_64")
    val file = program.path.get
    assertEquals("it runs\n", run(file))
    assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
    assertEquals(Some(file), program.path)
  }

  @Test def it_is_written_again_when_the_file_was_removed(): Unit = {
    val program = this.program("linux-x86_64")
    Files.delete(program.path.get)
    assertEquals("it runs\n", run(program.path.get))
  }

  @Test def another_platform_is_told_with_those_that_the_jar_has(): Unit = {
    val program = this.program("linux-aarch64")
    assertEquals(None, program.path)
    val advice = program.advice
    assertTrue(advice.contains("has it for linux-x86_64, and this machine is linux-aarch64"), advice)
    assertTrue(advice.contains("spark.seraphim.binary"), advice)
  }

  @Test def a_missing_jar_is_told(): Unit = {
    val program = new BundledProgram(new URLClassLoader(Array(), null), "linux-x86_64")
    assertEquals(None, program.path)
    assertTrue(program.advice.contains("the jar seraphim-program is not among the jars"), program.advice)
  }

  @Test def the_setting_comes_first(): Unit =
    assertEquals("/opt/seraphim", BundledProgram.find(Some("/opt/seraphim")))
}
