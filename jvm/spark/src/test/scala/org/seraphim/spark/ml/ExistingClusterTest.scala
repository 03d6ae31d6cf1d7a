package org.seraphim.spark.ml

import java.nio.file.{Files, Path}

import scala.util.{Random, Try}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertThrows, assertTrue}
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

import org.seraphim.client.TestServers
import org.seraphim.spark.{ChildProcess, SeraphimConf, SeraphimService, TestSpark}
import org.seraphim.spark.Waiting.waitUntil

/** Trainings whose parameters are on the servers of a cluster that runs already, with a worker of somebody else. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ExistingClusterTest {
  private var conf: SeraphimConf = _
  private var master: SeraphimService = _
  private var members: Seq[ChildProcess] = Nil
  private var folder: Path = _
  private var session: SparkSession = _

  @BeforeAll
  def start(): Unit = {
    val binary = TestServers.binaryOrSkip().toString
    conf = SeraphimConf(None, None, 0, Some(256L << 20), None, Some(binary))
    folder = Files.createTempDirectory("existing-cluster")
    master = SeraphimService.master(conf, "127.0.0.1")
    members = Seq.fill(2)(SeraphimService.server(conf, master.address, master.secret)) :+
      SeraphimService.worker(conf, master.address, master.secret, "a-worker-of-others", None, folder)
    val token = Files.write(folder.resolve("token"), master.secret.getBytes("UTF-8"))
    conf = conf.copy(master = Some(master.address), tokenFile = Some(token.toString))
    TestSpark.start("local[3]", "spark.seraphim.binary" -> binary, "spark.seraphim.master" -> master.address,
      "spark.seraphim.tokenFile" -> token.toString, "spark.seraphim.durability" -> "replica")
    session = SparkSession.builder().getOrCreate()
  }

  @AfterAll
  def stop(): Unit = {
    if (session != null) session.stop()
    members.foreach(_.close())
    if (master != null) master.close()
  }

  private def points(count: Int): DataFrame = {
    val random = new Random(1)
    val rows = (0 until count).map { _ =>
      val (a, b) = (random.nextGaussian(), random.nextGaussian())
      (if (a + b > 0) 1.0 else 0.0, Vectors.dense(a, b))
    }
    session.createDataFrame(rows).toDF("label", "features").repartition(3).cache()
  }

  private def estimator(workers: Int): SeraphimLogisticRegression =
    new SeraphimLogisticRegression().setNumWorkers(workers)

  private def status(): JsonNode = {
    val command = Seq(conf.binary.get, "status", "--json", "--master", master.address, "--token-file", conf.tokenFile.get)
    new ObjectMapper().readTree(scala.sys.process.Process(command).!!)
  }

  private def elements(list: JsonNode): Seq[JsonNode] = (0 until list.size).map(list.get(_))

  private def states(): Seq[String] = elements(status().path("jobs")).map(_.path("state").asText)

  private def memberNames(): Seq[String] =
    elements(status().path("members")).map(_.path("member").path("name").asText)

  @Test
  def the_servers_have_the_parameters_and_only_workers_of_the_application_run(): Unit = {
    val (frame, before, jobs) = (points(1000), memberNames(), states())
    val models = for (_ <- 1 to 2) yield estimator(3).setSettings(Array("epochs=3", "optimizer=adagrad")).fit(frame)
    assertArrayEquals(models(0).archive, models(1).archive)
    val right = models(0).transform(frame).filter("prediction = label").count().toDouble / frame.count()
    assertTrue(right > 0.95, right.toString)
    val report = new ObjectMapper().readTree(models(0).summary)
    assertEquals(2, report.path("store").size, "one store for each server, which has one lane")
    assertEquals(jobs ++ Seq("done", "done"), states())
    waitUntil("the workers have left", status())(memberNames().sorted == before.sorted)
    // One worker trains without servers.
    estimator(1).fit(frame)
    assertEquals(jobs.size + 2, states().size)
    frame.unpersist()
  }

  @Test
  def a_cancelled_training_leaves_no_job(): Unit = {
    val (frame, before, jobs) = (points(1000), memberNames(), states())
    val context = session.sparkContext
    var outcome: Try[SeraphimModel] = null
    val training = new Thread(() => {
      context.setJobGroup("endless", "a training without end")
      outcome = Try(estimator(2).setSettings(Array("optimizer=adagrad", "epochs=100000")).fit(frame))
    })
    training.start()
    waitUntil("the job runs", status())(outcome != null || states().lift(jobs.size).contains("running"))
    context.cancelJobGroup("endless")
    training.join(30000)
    assertTrue(outcome != null && outcome.isFailure, s"$outcome")
    waitUntil("the workers have left", status())(memberNames().sorted == before.sorted)
    waitUntil("the job has ended", status())(Set("cancelled", "failed").contains(states()(jobs.size)))
    frame.unpersist()
  }

  @Test
  def a_training_goes_on_when_a_server_is_killed(): Unit = {
    val (frame, before, jobs) = (points(1000), memberNames(), states())
    def serverProcesses(): Set[ProcessHandle] =
      ProcessHandle.current.descendants.toArray.map(_.asInstanceOf[ProcessHandle]).filter { process =>
        process.info.command.orElse("") == conf.binary.get && process.info.arguments.orElse(Array.empty[String]).headOption.contains("server")
      }.toSet
    val first = serverProcesses()
    val third = SeraphimService.server(conf, master.address, master.secret)
    val process = (serverProcesses() -- first).head
    try {
      var killed = Try(())
      val killing = new Thread(() => killed = Try {
        waitUntil("the job runs", status()) {
          elements(status().path("jobs")).lift(jobs.size).exists(_.path("progress").path("records").asLong > 0)
        }
        process.destroyForcibly()
        assertEquals("running", states()(jobs.size))
      })
      killing.start()
      val model = estimator(2).setSettings(Array("optimizer=adagrad", "epochs=1000")).fit(frame)
      killing.join()
      killed.get
      assertEquals("done", states()(jobs.size))
      assertEquals(1000, new ObjectMapper().readTree(model.summary).path("epochs").size)
      assertEquals(before.sorted, memberNames().filterNot(_.contains("spark-")).sorted)
    } finally third.close()
    frame.unpersist()
  }

  @Test
  def a_cluster_that_cannot_be_used_is_told_before_the_training(): Unit = {
    def reason(conf: SeraphimConf): String =
      assertThrows(classOf[ProgramFailure], () => TrainingCluster.of(session.sparkContext, conf)).getMessage
    val nobody = reason(conf.copy(master = Some("127.0.0.1:9")))
    assertTrue(nobody.contains("127.0.0.1:9") || nobody.contains("127.0.0.1:10"), nobody)
    val wrong = Files.write(folder.resolve("wrong"), "x".repeat(64).getBytes("UTF-8"))
    val token = reason(conf.copy(tokenFile = Some(wrong.toString)))
    assertTrue(token.contains("token"), token)
    val empty = SeraphimService.master(conf, "127.0.0.1")
    try {
      val own = Files.write(folder.resolve("own"), empty.secret.getBytes("UTF-8"))
      val noServers = reason(conf.copy(master = Some(empty.address), tokenFile = Some(own.toString)))
      assertTrue(noServers.contains("has no servers: start some with `seraphim server`"), noServers)
    } finally empty.close()
  }
}
