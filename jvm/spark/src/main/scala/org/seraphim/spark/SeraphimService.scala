package org.seraphim.spark

import java.net.Socket
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.security.SecureRandom

/** The processes beside the driver: a whole service in local mode, or the master of one. */
private[spark] final class SeraphimService(
    val address: String,
    val secret: String,
    val servers: Int,
    process: ChildProcess,
    secretFile: SecretFile)
    extends AutoCloseable {

  override def close(): Unit = {
    process.close()
    secretFile.close()
  }
}

/** A shared secret in a file that only this user can read, for a process. Without a secret there is no file. */
private[spark] final class SecretFile(secret: String) extends AutoCloseable {
  private val file: Option[Path] = if (secret.isEmpty) None else Some(SecretFile.write(secret))

  /** The flag of the program. */
  val arguments: Seq[String] = file.toSeq.flatMap(path => Seq("--token-file", path.toString))

  override def close(): Unit = file.foreach(path => Files.deleteIfExists(path))
}

private object SecretFile {
  private def write(secret: String): Path = {
    val onlyOwner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
    val file = LocalFolder.removedAtEnd(Files.createTempFile("seraphim", ".token", onlyOwner))
    Files.write(file, secret.getBytes(UTF_8))
  }
}

private[spark] object SeraphimService {
  private val SecretBytes = 32
  private val JsonAddress = "\"address\": \"([^\"]+)\"".r
  private val ReadyAddress = "master is ready.*?tcp:([^\"\\s,]+)".r

  /** A master and servers as processes of this machine. */
  def local(conf: SeraphimConf): SeraphimService = {
    val limit = conf.memoryBytes.toSeq.flatMap(bytes => Seq("--memory-limit", (bytes * conf.servers).toString))
    val arguments = Seq("serve-parameters", "--servers", conf.servers.toString, "--listen", "127.0.0.1:0", "--json")
    start(conf, arguments ++ limit) { line =>
      JsonAddress.findFirstMatchIn(line).map(_.group(1))
    }
  }

  /** The master, which servers on executors join. */
  def master(conf: SeraphimConf, host: String): SeraphimService =
    start(conf, Seq("master", "--listen", s"$host:0")) { line =>
      ReadyAddress.findFirstMatchIn(line).map(_.group(1))
    }

  private def start(conf: SeraphimConf, arguments: Seq[String])(address: String => Option[String]): SeraphimService = {
    val random = new Array[Byte](SecretBytes)
    new SecureRandom().nextBytes(random)
    val secret = random.map(byte => f"${byte & 0xff}%02x").mkString
    val file = new SecretFile(secret)
    val process = new ChildProcess(BundledProgram.find(conf.binary) +: (arguments ++ file.arguments))
    try new SeraphimService(process.waitFor(address), secret, conf.servers, process, file)
    catch {
      case fault: Throwable =>
        process.close()
        file.close()
        throw fault
    }
  }

  /** A server of the service with the master at `master`, until its process is closed. */
  def server(conf: SeraphimConf, master: String, secret: String): ChildProcess = {
    val limit = conf.memoryBytes.toSeq.flatMap(bytes => Seq("--memory-limit", bytes.toString))
    val listen = s"${addressTowards(master)}:0"
    member(conf, "server", master, secret, Seq("--listen", listen, "--lanes", "1") ++ limit, Map.empty)
  }

  /** A worker of such a service, for jobs of a group, if any. Its folder has its data, and takes its temporary files. */
  def worker(conf: SeraphimConf, master: String, secret: String, name: String, group: Option[String],
      folder: Path): ChildProcess = {
    val arguments = Seq("--name", name, "--local-data", folder.toString) ++
      group.toSeq.flatMap(name => Seq("--worker-group", name))
    member(conf, "worker", master, secret, arguments, Map("TMPDIR" -> folder.toString))
  }

  private def member(conf: SeraphimConf, kind: String, master: String, secret: String, arguments: Seq[String],
      environment: Map[String, String]): ChildProcess = {
    val file = new SecretFile(secret)
    try {
      val common = Seq("--master", master) ++ file.arguments
      val process = new ChildProcess((BundledProgram.find(conf.binary) +: kind +: common) ++ arguments, environment)
      process.waitFor(line => if (line.contains(s"$kind joined")) Some(()) else None)
      process
    } finally {
      // The process has read it.
      file.close()
    }
  }

  /** The address of this machine on the way to the master. Spark does not tell executors theirs. */
  private def addressTowards(master: String): String = {
    val colon = master.lastIndexOf(':')
    val socket = new Socket(master.take(colon), master.drop(colon + 1).toInt)
    try socket.getLocalAddress.getHostAddress finally socket.close()
  }
}
