package org.seraphim.spark

import java.io.IOException
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.util.Locale

/**
 * The program `seraphim` of the jar `seraphim-program`, which has one for each platform that it was built for. The file
 * is written once for this process, and removed with it.
 */
private[spark] final class BundledProgram(loader: ClassLoader, platform: String) {
  import BundledProgram._

  private var written: Option[Path] = None

  /** The program of this platform as a file; none if the jar does not have it or is not there. */
  def path: Option[Path] = synchronized {
    written = written.filter(file => Files.isExecutable(file)).orElse(write())
    written
  }

  private def write(): Option[Path] = Option(loader.getResourceAsStream(resource(platform))).map { in =>
    try {
      val folder = LocalFolder.create("seraphim-program")
      val file = folder.resolve("seraphim")
      folder.toFile.deleteOnExit()
      file.toFile.deleteOnExit()
      Files.copy(in, file)
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"))
    } catch {
      case fault: IOException =>
        val reason = s"the program of the jar cannot be written to a temporary folder: $fault"
        throw new IllegalStateException(reason, fault)
    } finally in.close()
  }

  /** Where the program may come from, for an error about a program that does not start. */
  def advice: String = {
    val known = Platforms.filter(name => loader.getResource(resource(name)) != null)
    val jar =
      if (known.isEmpty) "the jar seraphim-program is not among the jars of this process"
      else if (known.contains(platform)) s"the jar has it for $platform"
      else s"the jar seraphim-program has it for ${known.mkString(" and ")}, and this machine is $platform"
    s"$jar; spark.seraphim.binary names the program on each machine, otherwise it is that of the jar, " +
      "or found in the PATH"
  }
}

private[spark] object BundledProgram {
  private val Platforms = Seq("linux-x86_64", "linux-aarch64")

  private def resource(platform: String): String = s"org/seraphim/program/$platform/seraphim"

  /** The platform of this machine, such as `linux-x86_64`. */
  private def platform: String = {
    val processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT) match {
      case "amd64" | "x86_64" => "x86_64"
      case "arm64" | "aarch64" => "aarch64"
      case other => other
    }
    s"${System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(' ', '-')}-$processor"
  }

  /** That of the jars of this process. */
  private val ofProcess = new BundledProgram(getClass.getClassLoader, platform)

  /** The program to start on this machine: the one that the setting names, that of the jar, or the one in the PATH. */
  def find(setting: Option[String]): String =
    setting.orElse(ofProcess.path.map(_.toString)).getOrElse("seraphim")

  def advice: String = ofProcess.advice
}
