package org.seraphim.spark.ml

import java.nio.file.Files

import scala.util.Random

import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.junit.jupiter.api.Assertions.{assertThrows, assertTrue}
import org.junit.jupiter.api.Assumptions.abort
import org.junit.jupiter.api.Test

import org.seraphim.client.TestServers
import org.seraphim.spark.{BundledProgram, TestSpark}

/** What several sessions of one process have to do with each other, and sessions with bad settings. */
class SessionsTest {
  private def within[A](binary: String)(work: SparkSession => A): A =
    withSettings("spark.seraphim.binary" -> binary)(work)

  private def withSettings[A](settings: (String, String)*)(work: SparkSession => A): A = {
    TestSpark.start("local[2]", settings: _*)
    val session = SparkSession.builder().getOrCreate()
    try work(session) finally session.stop()
  }

  private def points(session: SparkSession, isFlipped: Boolean): DataFrame = {
    val random = new Random(1)
    val rows = Seq.fill(400) {
      val a = random.nextGaussian()
      (if ((a > 0) != isFlipped) 1.0 else 0.0, Vectors.dense(a, 1.0))
    }
    session.createDataFrame(rows).toDF("label", "features").repartition(2)
  }

  @Test
  def a_second_session_scores_with_its_own_model(): Unit = for (isFlipped <- Seq(false, true)) {
    val right = within(TestServers.binaryOrSkip().toString) { session =>
      val frame = points(session, isFlipped)
      new SeraphimLogisticRegression().fit(frame).transform(frame).filter("prediction = label").count()
    }
    assertTrue(right > 360, s"$right of 400")
  }

  @Test
  def without_a_setting_the_program_is_that_of_the_jar(): Unit = {
    if (BundledProgram.find(None) == "seraphim") {
      val line = "SKIPPED: the jar seraphim-program has no program for this machine"
      println(line)
      abort(line)
    }
    withSettings() { session =>
      val frame = points(session, isFlipped = false)
      val right = new SeraphimLogisticRegression().fit(frame).transform(frame).filter("prediction = label").count()
      assertTrue(right > 360, s"$right of 400")
    }
  }

  /** A file that looks like a program of another processor. */
  private def foreignProgram(): String = {
    val file = Files.createTempFile("seraphim-test", "")
    Files.write(file, Array[Byte](0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0))
    file.toFile.setExecutable(true)
    file.toFile.deleteOnExit()
    file.toString
  }

  @Test
  def a_program_that_does_not_run_is_an_error_with_the_setting(): Unit = {
    val model = within(TestServers.binaryOrSkip().toString) { session =>
      new SeraphimLogisticRegression().fit(points(session, isFlipped = false))
    }
    for (program <- Seq("/nowhere/seraphim", foreignProgram())) within(program) { session =>
      val frame = points(session, isFlipped = false)
      val faults = Seq[() => Unit](
        () => new SeraphimLogisticRegression().fit(frame),
        () => model.transform(frame).collect())
      faults.foreach { work =>
        val text = assertThrows(classOf[Exception], () => work()).getMessage
        assertTrue(text.contains(program) && text.contains("spark.seraphim.binary"), text)
      }
    }
  }
}
