package org.seraphim.client;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.util.function.LongFunction;
import java.util.zip.CRC32C;

/**
 * Reads frames from a connection. Doubles of an answer go straight into the array of who asked, piece by piece, so
 * that the memory of a connection does not grow with its answers.
 */
final class FrameReader {
  /** Bytes that are read, checked and copied at a time: they stay in the cache. */
  private static final int BUFFER_BYTES = 256 << 10;

  private final ReadableByteChannel channel;
  private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final Runnable onBytes;

  /** {@code onBytes} runs whenever bytes have arrived. */
  FrameReader(ReadableByteChannel channel, Runnable onBytes) {
    this.channel = channel;
    this.onBytes = onBytes;
    in.flip();
  }

  /** Reads the next frame. {@code asked} finds the request of a number, or null. */
  Frame read(LongFunction<PendingRequest> asked) throws IOException {
    fill(Header.BYTES);
    Header header = Header.read(in);
    Frame frame = FrameCodec.of(header);
    CRC32C crc = header.hasCrc() ? new CRC32C() : null;
    frame.meta = readBytes(header.metaBytes, crc);
    long[] keys = new long[header.keyCount];
    for (int i = 0; i < keys.length; i++) {
      fill(Long.BYTES);
      update(crc, Long.BYTES);
      keys[i] = in.getLong();
    }
    frame.keys = keys;
    readValues(header, frame, asked.apply(frame.request), crc);
    if (crc != null && (int) crc.getValue() != header.bodyCrc) {
      throw new DamagedFrameException("the body of a frame is damaged");
    }
    return frame;
  }

  private void readValues(Header header, Frame frame, PendingRequest request, CRC32C crc) throws IOException {
    boolean goesToArray = request != null && request.out != null && header.element == Element.F64
        && header.kind == Kind.PULLED && request.outFrom + header.valueCount <= request.out.length;
    if (!goesToArray) {
      frame.rawValues = readBytes((int) header.element.size(header.valueCount), crc);
      return;
    }
    int done = 0;
    while (done < header.valueCount) {
      fill(Double.BYTES);
      int count = Math.min(in.remaining() / Double.BYTES, header.valueCount - done);
      update(crc, count * Double.BYTES);
      in.asDoubleBuffer().get(request.out, request.outFrom + done, count);
      in.position(in.position() + count * Double.BYTES);
      done += count;
    }
    frame.doubles = request.out;
    frame.from = request.outFrom;
  }

  private byte[] readBytes(int length, CRC32C crc) throws IOException {
    byte[] bytes = new byte[length];
    int done = 0;
    while (done < length) {
      fill(1);
      int count = Math.min(in.remaining(), length - done);
      update(crc, count);
      in.get(bytes, done, count);
      done += count;
    }
    int padding = (int) FrameCodec.padded(length) - length;
    if (padding > 0) {
      fill(padding);
      update(crc, padding);
      in.position(in.position() + padding);
    }
    return bytes;
  }

  private void update(CRC32C crc, int count) {
    if (crc != null) {
      ByteBuffer part = in.duplicate();
      part.limit(part.position() + count);
      crc.update(part);
    }
  }

  /** Waits until the buffer has {@code count} bytes, at most 64. */
  private void fill(int count) throws IOException {
    if (in.remaining() >= count) {
      return;
    }
    in.compact();
    try {
      while (in.position() < count) {
        if (channel.read(in) < 0) {
          throw new EOFException("the other end closed the connection");
        }
        onBytes.run();
      }
    } finally {
      in.flip();
    }
  }
}
