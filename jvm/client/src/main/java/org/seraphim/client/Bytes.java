package org.seraphim.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Reads little-endian numbers. */
final class Bytes {
  private Bytes() {}

  static ByteBuffer of(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  static long longAt(byte[] bytes, int at) {
    return of(bytes).getLong(at);
  }
}
