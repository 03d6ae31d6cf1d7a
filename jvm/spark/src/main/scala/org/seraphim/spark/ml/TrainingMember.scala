package org.seraphim.spark.ml

import org.apache.spark.BarrierTaskContext
import org.apache.spark.internal.Logging

import org.seraphim.spark.SeraphimService

/**
 * A task of a training on several executors. All of them run at once, as a barrier stage.
 *
 * The first task starts the master, and all tasks tell each other what they have. Each task starts a server and a
 * worker, which has the records of the task as `worker://` data. The first task submits the job, and the others wait
 * for its end. If a task fails or is lost, Spark ends all of them, their processes end with them, and the stage runs
 * again.
 */
private[ml] object TrainingMember extends Logging {
  def run(blocks: Iterator[(BlockKey, RecordBlock)], plan: TrainingPlan): (TaskOutcome, RecordTotals) = {
    val context = BarrierTaskContext.get()
    val processes = new OpenProcesses
    val folder = new TrainingFolder
    try {
      val own = folder.write(blocks)
      val first =
        if (context.partitionId() > 0) None
        else Some(processes.keep(SeraphimService.master(plan.conf, hostOfFirst(context))))
      val address = first.map(service => MasterAddress(service.address, service.secret))
      // Spark looks once per second whether all tasks have come to such a place, so there are only two of them.
      val parts = context.allGather(MemberMessage(own, address).text).map(MemberMessage.parse)
      val totals = parts.map(_.totals).reduce(_ + _)
      if (totals.validation > 0 && own.validation == 0) folder.writeNoValidation(plan.schema)
      // All tasks have the same totals, so all of them train, or none does.
      val failure = totals.fault(plan).orElse {
        val master = parts.head.master.getOrElse(throw new IllegalStateException("the first task has no master"))
        processes.keep(SeraphimService.server(plan.conf, master.address, master.secret))
        val name = f"worker-${context.partitionId()}%05d"
        processes.keep(SeraphimService.worker(plan.conf, master.address, master.secret, name, folder.path))
        val failure = first.flatMap(service => submit(service, plan, totals, folder))
        context.barrier()
        failure
      }
      (NativeTraining.outcome(folder, failure), totals)
    } finally {
      processes.close()
      folder.close()
    }
  }

  /** Trains, when all members have joined. Returns the reason of a failure. */
  private def submit(
      service: SeraphimService, plan: TrainingPlan, totals: RecordTotals, folder: TrainingFolder): Option[String] = {
    val count = plan.workers.toString
    val words = Seq("submit", plan.algorithm, "--master", service.address, "--token-file", service.secretFile.toString,
      "--servers", count, "--workers", count)
    NativeTraining.runProgram(plan, words ++ NativeTraining.arguments(plan, totals, folder, name => s"worker://$name"))
  }

  private def hostOfFirst(context: BarrierTaskContext): String = {
    val address = context.getTaskInfos()(0).address
    val colon = address.lastIndexOf(':')
    if (colon < 0) address else address.substring(0, colon)
  }
}

/** Where the master of a training is. */
private final case class MasterAddress(address: String, secret: String)

/** What a task tells the others: its records and, in the first task, the master. */
private final case class MemberMessage(totals: RecordTotals, master: Option[MasterAddress]) {
  def text: String = (totals.text +: master.toSeq.flatMap(one => Seq(one.address, one.secret))).mkString("\n")
}

private object MemberMessage {
  def parse(text: String): MemberMessage = {
    val lines = text.split('\n')
    val master = if (lines.length == 3) Some(MasterAddress(lines(1), lines(2))) else None
    MemberMessage(RecordTotals.parse(lines(0)), master)
  }
}

/** The processes of a task, which end in the reverse order of their start. */
private final class OpenProcesses extends AutoCloseable {
  private var processes = List[AutoCloseable]()

  def keep[A <: AutoCloseable](process: A): A = {
    processes = process :: processes
    process
  }

  override def close(): Unit = processes.foreach(_.close())
}
