package org.seraphim.spark

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class LinearCombinationTest {
  private val rows = Array.tabulate(4)(i => new Row(new Slot(i, i.toLong)))

  private def of(terms: (Int, Double)*): LinearCombination =
    terms.foldLeft(LinearCombination.Zero) { case (sum, (row, factor)) =>
      sum.plus(factor, LinearCombination.of(rows(row)))
    }

  @Test def terms_are_in_the_order_of_tags_whatever_the_order_of_sums(): Unit = {
    assertEquals(of(0 -> 1.0, 1 -> 2.0, 3 -> 0.5).key, of(3 -> 0.5, 0 -> 1.0, 1 -> 2.0).key)
    assertEquals(of(0 -> 3.0).key, of(0 -> 1.0, 0 -> 2.0).key)
  }

  @Test def terms_that_cancel_are_removed(): Unit = {
    assertEquals(0, of(2 -> 1.5, 2 -> -1.5).size)
    assertEquals(of(1 -> 2.0).key, of(1 -> 2.0, 3 -> 1.0).plus(-1.0, of(3 -> 1.0)).key)
    assertEquals(0, of(1 -> 2.0).scaled(0).size)
  }

  @Test def a_row_as_it_is_is_recognized(): Unit = {
    assertTrue(of(2 -> 1.0).asRow.exists(_ eq rows(2)))
    assertEquals(None, of(2 -> 2.0).asRow)
    assertEquals(None, LinearCombination.Zero.asRow)
    assertTrue(of(2 -> 2.0).scaled(0.5).asRow.isDefined)
  }
}
