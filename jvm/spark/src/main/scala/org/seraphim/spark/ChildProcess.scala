package org.seraphim.spark

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

/**
 * A process that ends with this one, also when this one is killed: its standard input is a pipe from this process, and
 * a shell ends it when the pipe ends. What it prints is read, so that it never waits.
 */
private[spark] final class ChildProcess(command: Seq[String], environment: Map[String, String] = Map.empty)
    extends AutoCloseable {
  import ChildProcess._

  private val lines = new LinkedBlockingQueue[String](MaxLines)
  private val process = {
    val builder = new ProcessBuilder(Seq("sh", "-c", Guard, "sh") ++ command: _*).redirectErrorStream(true)
    environment.foreach { case (name, value) => builder.environment.put(name, value) }
    try builder.start()
    catch {
      case fault: IOException => throw new IllegalStateException(s"the shell sh cannot be started: ${fault.getMessage}")
    }
  }
  private val reader = new Thread(() => read(), s"seraphim output of ${command.head}")
  reader.setDaemon(true)
  reader.start()

  private def read(): Unit = {
    val out = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
    try Iterator.continually(out.readLine()).takeWhile(_ != null).foreach(line => lines.offer(line))
    catch {
      case _: IOException => ()
    } finally lines.offer(EndOfOutput)
  }

  def isAlive: Boolean = process.isAlive

  /** Waits until a line has what `pick` finds. */
  def waitFor[A](pick: String => Option[A]): A = {
    val seen = new StringBuilder
    val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(StartLimitSeconds)
    var found: Option[A] = None
    while (found.isEmpty) {
      val line = lines.poll(math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)
      if (line == null || line == EndOfOutput) {
        close()
        val what = if (line == null) s"is not ready after $StartLimitSeconds s" else "has ended"
        throw new IllegalStateException(
          s"${command.take(2).mkString(" ")} $what: ${seen.toString.trim}; ${BundledProgram.advice}")
      }
      seen.append(line).append('\n')
      found = pick(line)
    }
    found.get
  }

  /** Waits for the end, with every line that was not read yet; returns the status. `checkGoesOn` may throw. */
  def waitForEnd(checkGoesOn: () => Unit)(onLine: String => Unit): Int = {
    // The mark of the end is dropped, too, when there are too many lines.
    while (reader.isAlive || !lines.isEmpty) {
      checkGoesOn()
      val line = lines.poll(PollMilliseconds, TimeUnit.MILLISECONDS)
      if (line != null && line != EndOfOutput) onLine(line)
    }
    process.waitFor()
  }

  /** Asks the process to end, and waits. */
  override def close(): Unit = {
    process.getOutputStream.close()
    if (!process.waitFor(StopLimitSeconds, TimeUnit.SECONDS)) {
      process.descendants.forEach(child => child.destroyForcibly())
      process.destroyForcibly()
    }
  }
}

private[spark] object ChildProcess {
  private val EndOfOutput = "\u0000"
  /** Lines that are kept until somebody reads them; later ones are dropped. */
  private val MaxLines = 1000
  private val StartLimitSeconds = 30L
  private val PollMilliseconds = 50L
  private val StopLimitSeconds = 10L

  /**
   * Runs the arguments as a command in the background, and ends it when standard input ends. When the command ends by
   * itself, the output ends with it, which the reader sees.
   */
  private val Guard =
    """exec 3<&0
      |"$@" </dev/null 3<&- &
      |child=$!
      |( cat <&3; kill "$child" ) >/dev/null 2>&1 &
      |watcher=$!
      |exec 3<&-
      |wait "$child"
      |status=$?
      |kill "$watcher" 2>/dev/null
      |exit $status
      |""".stripMargin
}
