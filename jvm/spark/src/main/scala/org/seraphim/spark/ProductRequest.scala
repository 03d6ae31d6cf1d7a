package org.seraphim.spark

import org.seraphim.client.{FunctionCall, PartialAnswers}

/**
 * Inner products of a few rows with themselves and with others, in one pass over the rows (the pull function
 * `inner_products`), and some further pairs. All of it is one request.
 */
private[spark] final class ProductRequest(
    first: Seq[Row],
    others: Seq[Row],
    pairs: Seq[(Row, Row)] = Seq.empty) {

  private val all: Seq[Row] = {
    val seen = scala.collection.mutable.Set[Long]()
    (first ++ others).filter(row => seen.add(row.tag))
  }
  private val firstCount = first.map(_.tag).distinct.size

  def calls: Seq[FunctionCall] = {
    val count = new FunctionCall.Argument().whole(firstCount.toLong)
    val products = FunctionCall.of("inner_products", all.map(_.number).toArray, Array.empty[Int]).`with`(count)
    val dots = pairs.map { case (a, b) => FunctionCall.of("dot", Array(a.number, b.number), Array.empty[Int]) }
    if (firstCount == 0) dots else products +: dots
  }

  /** The rows of all products: they are thrown away if one of them could not be written. */
  def rows: Seq[Row] = all ++ pairs.flatMap { case (a, b) => Seq(a, b) }

  /** The products of pairs of rows, from the answers to the calls. */
  def products(answers: Seq[PartialAnswers]): Seq[(Row, Row, Double)] = {
    val dots = pairs.zip(answers.takeRight(pairs.size)).map { case ((a, b), answer) => (a, b, answer.sum()) }
    if (firstCount == 0) dots
    else {
      val sums = answers.head.sums()
      val places = for (i <- 0 until firstCount; j <- i until all.size) yield (all(i), all(j))
      places.zip(sums).map { case ((a, b), sum) => (a, b, sum) } ++ dots
    }
  }
}
