package org.seraphim.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;

/** Buffers outside of the heap in which frames are written before they are sent. They are used again. */
final class BufferPool {
  /** Values that travel in one frame: with fewer bytes a frame stays in the cache while it is checked and sent. */
  static final int CHUNK_DOUBLES = 64 << 10;
  private static final int BUFFER_BYTES = CHUNK_DOUBLES * Double.BYTES + (4 << 10);
  private static final int MAX_KEPT = 8;

  private final ArrayDeque<ByteBuffer> free = new ArrayDeque<>();

  /** An empty buffer of at least {@code bytes} bytes. */
  ByteBuffer take(int bytes) {
    if (bytes > BUFFER_BYTES) {
      return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
    ByteBuffer buffer;
    synchronized (free) {
      buffer = free.poll();
    }
    return buffer != null ? buffer : ByteBuffer.allocateDirect(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  void put(ByteBuffer buffer) {
    if (buffer.isDirect()) {
      buffer.clear();
      synchronized (free) {
        if (free.size() < MAX_KEPT) {
          free.push(buffer);
        }
      }
    }
  }
}
