package org.seraphim.spark

import org.junit.jupiter.api.Assertions.{assertThrows, assertTrue}
import org.junit.jupiter.api.Test

class SupportedVersionsTest {
  private val scala = s"${SupportedVersions.builtFor}.7"

  private def reason(spark: String, scala: String): String =
    assertThrows(classOf[IllegalStateException], () => SupportedVersions.check(spark, scala)).getMessage

  @Test def the_versions_of_the_page_are_taken(): Unit = {
    for (spark <- Seq("3.5.0", "3.5.7", "4.0.0-preview1", "4.1.0", "5.0.0")) SupportedVersions.check(spark, scala)
    SupportedVersions.check(org.apache.spark.SPARK_VERSION)
  }

  @Test def an_old_spark_is_told_with_what_is_needed(): Unit =
    for (spark <- Seq("2.4.8", "3.4.1", "unknown")) {
      val text = reason(spark, scala)
      assertTrue(text.contains(s"Spark $spark is not supported") && text.contains("Spark 3.5"), text)
    }

  @Test def another_scala_is_told_with_the_jar_that_is_needed(): Unit = {
    val other = if (SupportedVersions.builtFor == "2.13") "2.12" else "2.13"
    val text = reason("4.0.0", s"$other.18")
    assertTrue(text.contains(s"is for Scala ${SupportedVersions.builtFor}"), text)
    assertTrue(text.contains(s"seraphim-spark_$other"), text)
  }
}
