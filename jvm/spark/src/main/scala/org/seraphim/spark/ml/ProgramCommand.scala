package org.seraphim.spark.ml

import java.io.IOException

import scala.collection.mutable
import scala.sys.process.{Process, ProcessLogger}

import org.seraphim.spark.BundledProgram

/** Short commands of the program on the machine of the driver. */
private[ml] object ProgramCommand {

  /** What the program prints to its standard output. */
  def outputOf(binary: Option[String], arguments: Seq[String]): String =
    try run(binary, arguments)
    catch {
      case fault: IOException => throw ProgramFailure.ofStart(fault)
    }

  /**
   * Refuses an algorithm or settings that the program does not have, before a job of Spark runs. A driver needs no
   * program: without one, the training finds the same.
   */
  def checkSettings(binary: Option[String], algorithm: String, settings: Seq[String]): Unit =
    try run(binary, Seq("algorithms", algorithm) ++ settings)
    catch {
      case _: IOException => ()
    }

  private def run(binary: Option[String], arguments: Seq[String]): String = {
    val out = new StringBuilder
    val errors = mutable.ArrayBuffer[String]()
    val logger = ProcessLogger(line => out.append(line).append('\n'), line => errors += line)
    val status = Process(BundledProgram.find(binary) +: arguments).!(logger)
    if (status != 0) throw ProgramFailure.ofProgram(errors.toSeq, status)
    out.toString
  }
}
