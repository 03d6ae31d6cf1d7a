package org.seraphim.spark

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class TokenBookTest {
  @Test def a_token_is_closed_when_no_smaller_one_is_in_use(): Unit = {
    val book = new TokenBook
    val (first, second, third) = (book.next(), book.next(), book.next())
    assertTrue(first < second && second < third)
    assertEquals(None, book.finish(second, Nil))
    assertEquals(Some(second), book.finish(first, Nil))
    assertEquals(Some(third), book.finish(third, Nil))
    val fourth = book.next()
    assertEquals(Some(fourth), book.finish(fourth, Nil))
  }
}
