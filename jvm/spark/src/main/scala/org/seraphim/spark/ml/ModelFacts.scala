package org.seraphim.spark.ml

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What a model has of its training with Spark, in a file beside those of the program: the size of the vectors, their slots
 * if they became columns, and the labels, ascending. A model of the command line has nothing of it.
 */
private[ml] final case class ModelFacts(size: Option[Int], slots: Option[VectorSlots], labels: Seq[Double]) {

  def addTo(archive: Array[Byte]): Array[Byte] = DirectoryArchive.add(archive, ModelFacts.File, json)

  private def json: Array[Byte] = {
    val mapper = new ObjectMapper()
    val root = mapper.createObjectNode()
    size.foreach(root.put("num_features", _))
    slots.foreach { slots =>
      root.put("column", slots.column)
      val list = root.putArray("slots")
      slots.names.zip(slots.areNumbers).foreach { case (name, isNumber) =>
        list.addObject().put("name", name).put("is_number", isNumber)
      }
    }
    val list = root.putArray("labels")
    labels.foreach(list.add(_))
    mapper.writerWithDefaultPrettyPrinter().writeValueAsString(root).getBytes(UTF_8)
  }
}

private[ml] object ModelFacts {
  private val File = "spark.json"

  def of(archive: Array[Byte]): ModelFacts =
    DirectoryArchive.read(archive, File).fold(ModelFacts(None, None, Nil)) { bytes =>
      val root = new ObjectMapper().readTree(bytes)
      val items = (name: String) => (0 until root.path(name).size).map(root.path(name).get(_))
      val slots = items("slots")
      val columns = VectorSlots(root.path("column").asText, slots.map(_.path("name").asText), slots.map(isNumber))
      ModelFacts(
        Option(root.get("num_features")).map(_.asInt),
        if (slots.isEmpty) None else Some(columns),
        items("labels").map(_.asDouble))
    }

  private def isNumber(slot: JsonNode): Boolean = slot.path("is_number").asBoolean
}
