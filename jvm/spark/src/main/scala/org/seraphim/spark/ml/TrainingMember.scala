package org.seraphim.spark.ml

import java.util.UUID

import org.apache.spark.BarrierTaskContext
import org.apache.spark.internal.Logging

import org.seraphim.spark.{SecretFile, SeraphimService}

/**
 * A task of a training on several executors. All of them run at once, as a barrier stage.
 *
 * Each task starts a worker, which has the records of the task as `worker://` data. The parameters are on the servers
 * of a cluster that runs already, or the first task starts a master and each task a server. All tasks tell each other
 * what they have. The first task submits the job, and the others wait for its end. If a task fails or is lost, Spark
 * ends all of them, their processes end with them, and the stage runs again.
 */
private[ml] object TrainingMember extends Logging {
  def run(blocks: Iterator[(BlockKey, RecordBlock)], plan: TrainingPlan): (TaskOutcome, RecordTotals) = {
    val context = BarrierTaskContext.get()
    val processes = new OpenProcesses
    val folder = new TrainingFolder
    try {
      val own = folder.write(blocks)
      val isFirst = context.partitionId() == 0
      val ofFirst = if (isFirst) Some(masterOf(plan, context, processes)) else None
      // Spark looks once per second whether all tasks have come to such a place, so there are only two of them.
      val parts = context.allGather(MemberMessage(own, ofFirst).text).map(MemberMessage.parse)
      val totals = parts.map(_.totals).reduce(_ + _)
      if (totals.validation > 0 && own.validation == 0) folder.writeNoValidation(plan.schema)
      // All tasks have the same totals, so all of them train, or none does.
      val failure = totals.fault(plan).orElse {
        val master = parts.head.master.getOrElse(throw new IllegalStateException("the first task has no master"))
        if (plan.cluster.isEmpty) processes.keep(SeraphimService.server(plan.conf, master.address, master.secret))
        val name = f"${master.group.fold("")(_ + "-")}worker-${context.partitionId()}%05d"
        processes.keep(
          SeraphimService.worker(plan.conf, master.address, master.secret, name, master.group, folder.path))
        val failure = if (isFirst) submit(master, plan, totals, folder) else None
        context.barrier()
        failure
      }
      (NativeTraining.outcome(folder, failure), totals)
    } finally {
      processes.close()
      folder.close()
    }
  }

  /** The master of the running cluster, where the workers of this training are a group of their own, or a new one. */
  private def masterOf(plan: TrainingPlan, context: BarrierTaskContext, processes: OpenProcesses): MasterAccess =
    plan.cluster match {
      case Some(cluster) => MasterAccess(cluster.address, cluster.secret, Some(s"spark-${UUID.randomUUID()}"))
      case None =>
        val service = processes.keep(SeraphimService.master(plan.conf, hostOfFirst(context)))
        MasterAccess(service.address, service.secret, None)
    }

  /** Trains, when all members have joined. Returns the reason of a failure. */
  private def submit(
      master: MasterAccess, plan: TrainingPlan, totals: RecordTotals, folder: TrainingFolder): Option[String] = {
    val file = new SecretFile(master.secret)
    try {
      val servers = plan.cluster.fold(plan.workers)(_.servers)
      val words = Seq("submit", plan.algorithm, "--master", master.address, "--servers", servers.toString, "--workers",
        plan.workers.toString) ++ file.arguments
      // The cluster outlives this task: without its workers the job must not stay there.
      val group = master.group.toSeq.flatMap(name => Seq("--worker-group", name, "--cancel-on-exit"))
      val durability =
        if (plan.cluster.isEmpty) Nil else plan.conf.durability.toSeq.flatMap(value => Seq("--durability", value))
      val arguments = NativeTraining.arguments(plan, totals, folder, name => s"worker://$name")
      NativeTraining.runProgram(plan, words ++ group ++ durability ++ arguments)
    } finally file.close()
  }

  private def hostOfFirst(context: BarrierTaskContext): String = {
    val address = context.getTaskInfos()(0).address
    val colon = address.lastIndexOf(':')
    if (colon < 0) address else address.substring(0, colon)
  }
}

/** Where the master of a training is, and the group of the workers at a master that has other workers too. */
private final case class MasterAccess(address: String, secret: String, group: Option[String])

/** What a task tells the others: its records and, in the first task, the master. */
private final case class MemberMessage(totals: RecordTotals, master: Option[MasterAccess]) {
  def text: String = {
    val ofMaster = master.toSeq.flatMap(one => Seq(one.address, one.secret, one.group.getOrElse("")))
    (totals.text +: ofMaster).mkString("\n")
  }
}

private object MemberMessage {
  def parse(text: String): MemberMessage = {
    val lines = text.split("\n", -1)
    val master =
      if (lines.length == 1) None else Some(MasterAccess(lines(1), lines(2), Some(lines(3)).filter(_.nonEmpty)))
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
