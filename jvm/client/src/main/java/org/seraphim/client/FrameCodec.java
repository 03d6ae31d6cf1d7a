package org.seraphim.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** The bytes of frames. Buffers are little-endian. */
final class FrameCodec {
  private FrameCodec() {}

  static long padded(long bytes) {
    return (bytes + 7) / 8 * 8;
  }

  /** The bytes of a frame whose meta has {@code metaBytes} bytes. */
  static int size(Frame frame, int metaBytes) {
    long body = padded(metaBytes) + (long) frame.keys.length * Long.BYTES
        + padded(frame.element.size(frame.valueCount));
    return Math.toIntExact(Header.BYTES + body);
  }

  /** Appends a frame with the number {@code request}. A frame within a batch has no CRC of its own. */
  static void encode(Frame frame, long request, byte[] meta, boolean hasCrc, ByteBuffer out) {
    int start = out.position();
    Header.write(frame, request, meta.length, hasCrc, out);
    out.put(meta);
    pad(out, start);
    for (long key : frame.keys) {
      out.putLong(key);
    }
    if (frame.doubles != null) {
      out.asDoubleBuffer().put(frame.doubles, frame.from, frame.valueCount);
      out.position(out.position() + frame.valueCount * Double.BYTES);
    } else {
      out.put(frame.rawValues);
    }
    pad(out, start);
    int body = start + Header.BYTES;
    if (hasCrc) {
      out.putInt(start + Header.BODY_CRC_AT, Header.crc(out, body, out.position() - body));
    }
    out.putInt(start + Header.HEADER_CRC_AT, Header.crc(out, start, Header.HEADER_CRC_AT));
  }

  /** Changes the number of the only frame in {@code bytes}, whose meta does not have it. */
  static void setNumber(ByteBuffer bytes, long request) {
    bytes.putLong(Header.REQUEST_AT, request);
    bytes.putInt(Header.HEADER_CRC_AT, Header.crc(bytes, 0, Header.HEADER_CRC_AT));
  }

  private static void pad(ByteBuffer out, int start) {
    while ((out.position() - start) % 8 != 0) {
      out.put((byte) 0);
    }
  }

  /** The bytes of one frame. */
  static byte[] bytes(Frame frame, long request, boolean hasCrc) {
    byte[] meta = frame.metaFor(request);
    byte[] bytes = new byte[size(frame, meta.length)];
    encode(frame, request, meta, hasCrc, ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN));
    return bytes;
  }

  /** Reads all frames of {@code in}, which follow each other without a gap. */
  static List<Frame> decodeAll(ByteBuffer in) throws DamagedFrameException {
    List<Frame> frames = new ArrayList<>();
    while (in.hasRemaining()) {
      frames.add(decode(in));
    }
    return frames;
  }

  private static Frame decode(ByteBuffer in) throws DamagedFrameException {
    if (in.remaining() < Header.BYTES) {
      throw new DamagedFrameException("a frame ends within its header");
    }
    Header header = Header.read(in);
    long valueBytes = header.element.size(header.valueCount);
    long body = padded(header.metaBytes) + (long) header.keyCount * Long.BYTES + padded(valueBytes);
    if (in.remaining() < body) {
      throw new DamagedFrameException("a frame ends within its body");
    }
    int start = in.position();
    if (header.hasCrc() && Header.crc(in, start, (int) body) != header.bodyCrc) {
      throw new DamagedFrameException("the body of a frame is damaged");
    }
    Frame frame = of(header);
    frame.meta = new byte[header.metaBytes];
    in.get(frame.meta);
    in.position(start + (int) padded(header.metaBytes));
    frame.keys = new long[header.keyCount];
    for (int i = 0; i < header.keyCount; i++) {
      frame.keys[i] = in.getLong();
    }
    frame.rawValues = new byte[(int) valueBytes];
    in.get(frame.rawValues);
    in.position(start + (int) body);
    return frame;
  }

  /** A frame with the fields of a header, still without body. */
  static Frame of(Header header) {
    Frame frame = new Frame(header.kind);
    frame.element = header.element;
    frame.job = header.job;
    frame.request = header.request;
    frame.clock = header.clock;
    frame.task = header.task;
    frame.matrix = header.matrix;
    frame.index = header.index;
    frame.valueCount = header.valueCount;
    return frame;
  }
}
