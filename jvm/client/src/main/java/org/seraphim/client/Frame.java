package org.seraphim.client;

import java.util.Map;

/**
 * A frame: the fields of its header and the three sections of its body. A request to send has no number yet; its
 * connection gives it one. Fields are set once, before the frame is shared.
 */
final class Frame {
  static final byte[] NO_META = {};
  static final long[] NO_KEYS = {};
  private static final byte[] NO_VALUES = {};

  final Kind kind;
  Element element = Element.F32;
  int job;
  long request;
  long clock;
  int task;
  int matrix;
  int index;
  byte[] meta = NO_META;
  /** In place of {@link #meta}: the fields of a JSON message after {@code request} and {@code job}. */
  Map<String, Object> json;
  long[] keys = NO_KEYS;
  /** Number of values. */
  int valueCount;
  /** The values as they travel, unless {@link #doubles} has them. */
  byte[] rawValues = NO_VALUES;
  /** Values of type f64, from {@link #from} on. */
  double[] doubles;
  int from;

  Frame(Kind kind) {
    this.kind = kind;
  }

  /** Sets the values to {@code count} numbers of {@code array} from {@code start} on. The array is not copied. */
  Frame withDoubles(double[] array, int start, int count) {
    element = Element.F64;
    doubles = array;
    from = start;
    valueCount = count;
    return this;
  }

  Frame withMeta(byte[] bytes) {
    meta = bytes;
    return this;
  }

  /** The meta of this frame when its number is {@code number}. */
  byte[] metaFor(long number) {
    return json == null ? meta : Requests.jsonMeta(number, job, json);
  }
}
