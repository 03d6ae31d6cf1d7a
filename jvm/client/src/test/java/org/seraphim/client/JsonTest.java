package org.seraphim.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
  @ParameterizedTest
  @ValueSource(strings = {
      "{}", "[]", "[1,-2,0.5]", "{\"a\":[true,false,null],\"b\":{\"c\":\"d \\\" \\\\ \\u0001\"}}", "\"äö\""})
  void what_is_read_is_written_again(String text) throws Exception {
    assertEquals(text, new String(Json.write(parse(text)), StandardCharsets.UTF_8));
  }

  @Test
  void numbers_use_all_bits() throws Exception {
    assertEquals(-1L, parse("18446744073709551615"));
    assertEquals(Long.MIN_VALUE, parse("-9223372036854775808"));
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "", "{", "[1,", "{\"a\"}", "\"a", "tru", "1 2", "[1 2]", "\"\\u12\"", "\"\\x\"", "99999999999999999999",
      "--1", "nul"})
  void what_is_no_json_is_an_error(String text) {
    assertThrows(DamagedFrameException.class, () -> parse(text));
  }

  @Test
  void deep_nesting_is_an_error() {
    assertThrows(DamagedFrameException.class, () -> parse("[".repeat(100_000)));
  }

  private static Object parse(String text) throws DamagedFrameException {
    return Json.parse(text.getBytes(StandardCharsets.UTF_8));
  }
}
