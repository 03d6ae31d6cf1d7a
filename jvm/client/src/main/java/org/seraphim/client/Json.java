package org.seraphim.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The JSON of the protocol. Objects are maps in the order of their fields, arrays are lists, numbers are {@link Long}
 * if they are whole (those from 2^63 on as their 64 bits) and {@link Double} if not.
 */
final class Json {
  /** Levels of nesting that are read; messages have five. */
  private static final int MAX_DEPTH = 64;

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** Parses a text. What is no JSON is a {@link DamagedFrameException}. */
  static Object parse(byte[] utf8) throws DamagedFrameException {
    Json json = new Json(new String(utf8, StandardCharsets.UTF_8));
    Object value = json.value();
    json.skipSpace();
    if (json.at != json.text.length()) {
      throw json.fault("the end");
    }
    return value;
  }

  private Object value() throws DamagedFrameException {
    if (++depth > MAX_DEPTH) {
      throw fault("at most " + MAX_DEPTH + " levels");
    }
    skipSpace();
    char first = at < text.length() ? text.charAt(at) : 0;
    Object value;
    switch (first) {
      case '{': value = object(); break;
      case '[': value = array(); break;
      case '"': value = string(); break;
      case 't': value = word("true", true); break;
      case 'f': value = word("false", false); break;
      case 'n': value = word("null", null); break;
      default: value = number();
    }
    depth--;
    return value;
  }

  private Map<String, Object> object() throws DamagedFrameException {
    Map<String, Object> fields = new LinkedHashMap<>();
    at++;
    if (takes('}')) {
      return fields;
    }
    do {
      skipSpace();
      String name = string();
      expect(':');
      fields.put(name, value());
    } while (takes(','));
    expect('}');
    return fields;
  }

  private List<Object> array() throws DamagedFrameException {
    List<Object> items = new ArrayList<>();
    at++;
    if (takes(']')) {
      return items;
    }
    do {
      items.add(value());
    } while (takes(','));
    expect(']');
    return items;
  }

  private String string() throws DamagedFrameException {
    if (at >= text.length() || text.charAt(at) != '"') {
      throw fault("a text in quotes");
    }
    StringBuilder out = new StringBuilder();
    for (at++; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c == '"') {
        at++;
        return out.toString();
      }
      out.append(c == '\\' ? escaped() : c);
    }
    throw fault("the end of a text");
  }

  private char escaped() throws DamagedFrameException {
    char c = ++at < text.length() ? text.charAt(at) : 0;
    switch (c) {
      case '"': case '\\': case '/': return c;
      case 'b': return '\b';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'u':
        at += 4;
        try {
          return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
        } catch (IndexOutOfBoundsException | NumberFormatException e) {
          throw fault("four hexadecimal digits");
        }
      default: throw fault("an escaped character");
    }
  }

  private Object word(String word, Object value) throws DamagedFrameException {
    if (!text.startsWith(word, at)) {
      throw fault(word);
    }
    at += word.length();
    return value;
  }

  private Object number() throws DamagedFrameException {
    int start = at;
    while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    String digits = text.substring(start, at);
    try {
      if (digits.indexOf('.') >= 0 || digits.indexOf('e') >= 0 || digits.indexOf('E') >= 0) {
        return Double.parseDouble(digits);
      }
      return digits.startsWith("-") ? Long.parseLong(digits) : Long.parseUnsignedLong(digits);
    } catch (NumberFormatException e) {
      throw fault("a value");
    }
  }

  private boolean takes(char c) {
    skipSpace();
    boolean is = at < text.length() && text.charAt(at) == c;
    at += is ? 1 : 0;
    return is;
  }

  private void expect(char c) throws DamagedFrameException {
    if (!takes(c)) {
      throw fault("'" + c + "'");
    }
  }

  private void skipSpace() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private DamagedFrameException fault(String expected) {
    return new DamagedFrameException("JSON of a frame has no " + expected + " at character " + at);
  }

  /** Writes a value of the types that {@link #parse} returns, and other whole numbers, without spaces. */
  static byte[] write(Object value) {
    StringBuilder out = new StringBuilder();
    append(value, out);
    return out.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static void append(Object value, StringBuilder out) {
    if (value instanceof Map) {
      char separator = '{';
      for (Map.Entry<?, ?> field : ((Map<?, ?>) value).entrySet()) {
        out.append(separator);
        appendText(field.getKey().toString(), out);
        append(field.getValue(), out.append(':'));
        separator = ',';
      }
      out.append(separator == '{' ? "{}" : "}");
    } else if (value instanceof List) {
      char separator = '[';
      for (Object item : (List<?>) value) {
        append(item, out.append(separator));
        separator = ',';
      }
      out.append(separator == '[' ? "[]" : "]");
    } else if (value instanceof CharSequence) {
      appendText(value.toString(), out);
    } else {
      out.append(value);
    }
  }

  private static void appendText(String text, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
