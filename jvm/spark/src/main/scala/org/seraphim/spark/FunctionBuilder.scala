package org.seraphim.spark

import org.seraphim.client.FunctionCall

/** A push function whose result row is not known yet. */
private[spark] final class FunctionBuilder(name: String, reads: Seq[Row], argument: Option[FunctionCall.Argument]) {

  /** The call that writes row `into`. */
  def into(row: Int): FunctionCall = {
    val call = FunctionCall.of(name, reads.map(_.number).toArray, Array(row))
    argument.fold(call)(call.`with`)
  }
}

private[spark] object FunctionBuilder {

  /** A function with no argument, or with a number. */
  def apply(name: String, reads: Seq[Row], number: Option[Double] = None): FunctionBuilder =
    new FunctionBuilder(name, reads, number.map(value => new FunctionCall.Argument().number(value)))

  def of(name: String, reads: Seq[Row], argument: FunctionCall.Argument): FunctionBuilder =
    new FunctionBuilder(name, reads, Some(argument))
}
