package org.seraphim.client;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/** The 64 bytes before the body of a frame, and the limits of what may follow them. */
final class Header {
  static final int BYTES = 64;
  static final int VERSION = 2;
  /** Where the number of the request is. */
  static final int REQUEST_AT = 16;
  /** Where the CRC of the body is. */
  static final int BODY_CRC_AT = 56;
  /** Where the CRC of the header is: it covers what is before it. */
  static final int HEADER_CRC_AT = 60;
  static final int HAS_CRC = 1;
  static final int ELEMENT_SHIFT = 4;
  private static final int MAGIC = 0x48505253;
  private static final int ELEMENT_MASK = 7;
  private static final int SLACK = 64 << 10;
  private static final int MAX_KEYS_BYTES = (4 << 20) + SLACK;
  private static final int MAX_VALUES_BYTES = (64 << 20) + SLACK;
  private static final int MAX_META_BYTES = 256 << 20;

  Kind kind;
  int flags;
  Element element;
  int job;
  long request;
  long clock;
  int task;
  int matrix;
  int metaBytes;
  int keyCount;
  int valueCount;
  int index;
  int bodyCrc;

  /** Reads the next 64 bytes of {@code in}. */
  static Header read(ByteBuffer in) throws DamagedFrameException {
    int start = in.position();
    if (in.getInt(start) != MAGIC) {
      throw new DamagedFrameException("the other end is no parameter service of Seraphim");
    }
    int version = in.getShort(start + 4) & 0xffff;
    if (version != VERSION) {
      throw new DamagedFrameException("the service has version " + version + " of the protocol, this client "
          + VERSION + ": use client and service of one release");
    }
    if (crc(in, start, HEADER_CRC_AT) != in.getInt(start + HEADER_CRC_AT)) {
      throw new DamagedFrameException("the header of a frame is damaged");
    }
    Header header = new Header();
    header.kind = Kind.of(in.getShort(start + 6) & 0xffff);
    header.flags = in.getInt(start + 8);
    header.element = Element.of(header.flags >>> ELEMENT_SHIFT & ELEMENT_MASK);
    header.job = in.getInt(start + 12);
    header.request = in.getLong(start + 16);
    header.clock = in.getLong(start + 24);
    header.task = in.getInt(start + 32);
    header.matrix = in.getInt(start + 36);
    header.metaBytes = in.getInt(start + 40);
    header.keyCount = in.getInt(start + 44);
    header.valueCount = in.getInt(start + 48);
    header.index = in.getInt(start + 52);
    header.bodyCrc = in.getInt(start + BODY_CRC_AT);
    header.checkLengths();
    in.position(start + BYTES);
    return header;
  }

  /** Refuses lengths that no frame may have, before memory is allocated for them. */
  private void checkLengths() throws DamagedFrameException {
    boolean isTooLong = metaBytes < 0 || metaBytes > MAX_META_BYTES
        || keyCount < 0 || (long) keyCount * Long.BYTES > MAX_KEYS_BYTES
        || valueCount < 0 || element.size(valueCount) > MAX_VALUES_BYTES;
    if (isTooLong) {
      throw new DamagedFrameException("a frame with sections of " + Integer.toUnsignedString(metaBytes)
          + " bytes, " + Integer.toUnsignedString(keyCount) + " keys and "
          + Integer.toUnsignedString(valueCount) + " values is longer than any may be");
    }
  }

  boolean hasCrc() {
    return (flags & HAS_CRC) != 0;
  }

  /** Writes the header of a frame, without its CRCs, to the next 64 bytes of {@code out}. */
  static void write(Frame frame, long request, int metaBytes, boolean hasCrc, ByteBuffer out) {
    out.putInt(MAGIC).putShort((short) VERSION).putShort((short) frame.kind.code());
    out.putInt((hasCrc ? HAS_CRC : 0) | frame.element.ordinal() << ELEMENT_SHIFT);
    out.putInt(frame.job).putLong(request).putLong(frame.clock).putInt(frame.task).putInt(frame.matrix);
    out.putInt(metaBytes).putInt(frame.keys.length).putInt(frame.valueCount).putInt(frame.index);
    out.putInt(0).putInt(0);
  }

  /** The CRC-32C of {@code length} bytes from {@code start} on. */
  static int crc(ByteBuffer bytes, int start, int length) {
    ByteBuffer part = bytes.duplicate();
    part.limit(start + length).position(start);
    CRC32C crc = new CRC32C();
    crc.update(part);
    return (int) crc.getValue();
  }
}
