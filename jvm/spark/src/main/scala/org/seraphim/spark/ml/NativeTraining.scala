package org.seraphim.spark.ml

import java.nio.file.Files

import scala.collection.mutable

import org.apache.spark.{HashPartitioner, SparkEnv, SparkException, TaskContext, TaskKilledException}
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row

import org.seraphim.spark.{BundledProgram, ChildProcess}

/** What a task has of a training: the reason why it failed, or the model, or neither, if another task has the model. */
private[ml] final case class TaskOutcome(failure: Option[String], archive: Option[Array[Byte]], report: Option[String])

/**
 * Trains with the program `seraphim`, as processes beside executors.
 *
 * An ordinary stage encodes the rows as Arrow files. With one worker, one task receives all of them, writes them to its
 * disk, and runs the program on them. With several, each task of a barrier stage has the records of one worker, see
 * [[TrainingMember]]. What a training returns is the model directory.
 */
private[ml] object NativeTraining extends Logging {
  /** Exit codes for wrong parameters, wrong data and models that do not fit: another attempt ends in the same way. */
  private val FinalCodes = Set(2, 3, 4)

  def run(rows: RDD[Row], plan: TrainingPlan): Trained = {
    val blocks = RecordBlocks.encode(rows, plan)
    val outcomes =
      if (plan.workers == 1) blocks.mapPartitions(blocks => Iterator(trainAlone(blocks, plan)))
      else {
        val members = blocks.barrier().mapPartitions(blocks => Iterator((0, TrainingMember.run(blocks, plan))))
        // Spark runs a lost barrier stage again only if another stage comes after it.
        members.partitionBy(new HashPartitioner(1)).values
      }
    val texts = new ProgramTexts(plan.schema)
    val all =
      try outcomes.collect()
      catch {
        case fault: SparkException => throw ProgramFailure.ofTask(fault, texts)
      }
    all.flatMap { case (outcome, _) => outcome.failure }.headOption.foreach { reason =>
      throw new ProgramFailure(texts.forSpark(reason))
    }
    val archive = all.flatMap { case (outcome, _) => outcome.archive }.headOption
      .getOrElse(throw new ProgramFailure("no worker has saved the model"))
    val report = texts.ofReport(all.flatMap { case (outcome, _) => outcome.report }.headOption.getOrElse(""))
    ProgramTexts.notices(report).foreach(notice => logWarning(s"${plan.algorithm}: $notice"))
    Trained(plan.facts(all.head._2).addTo(archive), report)
  }

  private def trainAlone(blocks: Iterator[(BlockKey, RecordBlock)], plan: TrainingPlan): (TaskOutcome, RecordTotals) = {
    val folder = new TrainingFolder
    try {
      val totals = folder.write(blocks)
      val path = (name: String) => folder.path.resolve(name).toString
      val words = Seq("train", plan.algorithm, "--scratch", folder.path.toString, "--checkpoint-every", "off")
      val failure = totals.fault(plan).orElse(runProgram(plan, words ++ arguments(plan, totals, folder, path)))
      (outcome(folder, failure), totals)
    } finally folder.close()
  }

  /** The arguments that training and submitting have in common; `path` is the argument for a name in the folder. */
  def arguments(
      plan: TrainingPlan, totals: RecordTotals, folder: TrainingFolder, path: String => String): Seq[String] = {
    val label = plan.label.toSeq.flatMap(name => Seq("--label", name))
    Seq("--format", "arrow", "--data", path(TrainingFolder.Rows)) ++ label ++
      plan.weight.toSeq.flatMap(name => Seq("--weight", name)) ++
      (if (totals.validation > 0) Seq("--validate", path(TrainingFolder.Validation)) else Nil) ++
      Seq("--model", path(TrainingFolder.Model), "--report", folder.report.toString) ++
      Seq("--seed", plan.seed.toString, "--threads", plan.threads.toString) ++
      plan.tasks.toSeq.flatMap(count => Seq("--tasks", count.toString)) ++ plan.settings.words(totals.labels)
  }

  /** Runs the program to its end. Returns the reason of a failure that another attempt would have, too. */
  def runProgram(plan: TrainingPlan, words: Seq[String]): Option[String] = {
    val process = new ChildProcess(BundledProgram.find(plan.conf.binary) +: words)
    try {
      val lines = mutable.Queue[String]()
      val environment = SparkEnv.get
      val status = process.waitForEnd(() => checkTaskGoesOn(environment)) { line =>
        logInfo(line)
        lines.enqueue(line)
        if (lines.size > ProgramFailure.MaxLines) lines.dequeue()
      }
      if (status == 0) None
      else {
        val failure = ProgramFailure.ofProgram(lines.toSeq, status)
        if (FinalCodes.contains(status)) Some(failure.getMessage) else throw failure
      }
    } finally process.close()
  }

  /**
   * Fails when this task must end: its job was cancelled, another task of a barrier stage has failed, or the session of
   * local mode was stopped, which ends no task.
   */
  private def checkTaskGoesOn(environment: SparkEnv): Unit =
    if (Option(TaskContext.get()).exists(_.isInterrupted()) || (SparkEnv.get ne environment)) {
      throw new TaskKilledException("the training was ended")
    }

  /** What a task has after the program has ended. */
  def outcome(folder: TrainingFolder, failure: Option[String]): TaskOutcome = {
    val report =
      if (failure.isEmpty && Files.exists(folder.report)) Some(new String(Files.readAllBytes(folder.report), "UTF-8"))
      else None
    TaskOutcome(failure, if (failure.isEmpty) folder.model else None, report)
  }
}
