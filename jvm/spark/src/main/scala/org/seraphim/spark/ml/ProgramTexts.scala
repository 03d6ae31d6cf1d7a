package org.seraphim.spark.ml

import java.util.regex.Matcher

import com.fasterxml.jackson.databind.ObjectMapper

/** What the program tells of the files with the rows, in the words of a user who has a DataFrame. */
private[ml] final class ProgramTexts(schema: RecordSchema) {
  private val columns = schema.arrow.getFields

  /** `.../rows/part-00000-00000.arrow:3:1` is a value of the first column. */
  def forSpark(text: String): String = ProgramTexts.Place.replaceAllIn(text, place => {
    val column = Option(place.group(1)).map(_.toInt - 1).filter(number => number >= 0 && number < columns.size)
    Matcher.quoteReplacement(column.fold("the DataFrame")(number => s"column '${columns.get(number).getName}'"))
  })

  /** A report whose notices are in these words. */
  def ofReport(report: String): String = ProgramTexts.notices(report).foldLeft(report) { (report, notice) =>
    report.replace(ProgramTexts.quoted(notice), ProgramTexts.quoted(forSpark(notice)))
  }
}

private[ml] object ProgramTexts {
  private val Folder = s"(?:${TrainingFolder.Rows}|${TrainingFolder.Validation})"
  private val File = "/part-\\d+-\\d+\\.arrow"
  private val Place =
    s"""[^\\s'"]*(?:${TrainingFolder.Prefix}-[^\\s/'"]+/$Folder(?:$File)?|$Folder$File)(?::\\d+)?(?::(\\d+))?""".r

  private def quoted(text: String): String = new ObjectMapper().writeValueAsString(text)

  /** The notices of a report. */
  def notices(report: String): Seq[String] =
    if (report.isEmpty) Nil
    else {
      val notices = new ObjectMapper().readTree(report).path("notices")
      (0 until notices.size).map(i => notices.get(i).asText)
    }
}
