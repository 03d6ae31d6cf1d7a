package org.seraphim.spark

import java.util.Properties

/** Which versions of Spark and Scala this jar runs with. */
private[spark] object SupportedVersions {

  /** The version of Scala that the jar was built for, such as `2.13`. */
  val builtFor: String = {
    val properties = new Properties()
    val file = getClass.getResourceAsStream("build.properties")
    try properties.load(file) finally file.close()
    properties.getProperty("scala")
  }

  /** Refuses other versions than 3.5 and from 4.0 on, and another Scala than that of the jar. */
  def check(spark: String, scala: String = util.Properties.versionNumberString): Unit = {
    val parts = spark.split("[.-]").take(2).map(part => util.Try(part.toInt).getOrElse(0))
    val (major, minor) = (parts.headOption.getOrElse(0), parts.lift(1).getOrElse(0))
    if (!(major >= 4 || major == 3 && minor >= 5)) {
      throw new IllegalStateException(s"Spark $spark is not supported; Seraphim needs Spark 3.5, or 4.0 or later")
    }
    val binary = scala.split('.').take(2).mkString(".")
    if (binary != builtFor) {
      throw new IllegalStateException(
        s"this jar of Seraphim is for Scala $builtFor, and Spark $spark runs with Scala $scala; use the jar " +
          s"seraphim-spark_$binary")
    }
  }
}
