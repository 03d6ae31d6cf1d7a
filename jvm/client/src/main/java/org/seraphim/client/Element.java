package org.seraphim.client;

/** The types of values on the wire, in the order of their codes: the first one has code 0. */
enum Element {
  F32(4), F64(8), I64(8), BF16(2), INT8(1), I32(4), U32(4),
  /** Packed {@link #I32}, which this client neither asks for nor sends; counted in bytes. */
  PACKED(1);

  /** Number of columns that share a scale in {@link #INT8}. */
  private static final int INT8_BLOCK = 256;
  private static final Element[] ALL = values();

  /** Bytes of a value, without the scales of {@link #INT8}. */
  final int bytes;

  Element(int bytes) {
    this.bytes = bytes;
  }

  /** Bytes of {@code count} values, without padding. */
  long size(long count) {
    long scales = this == INT8 ? (count + INT8_BLOCK - 1) / INT8_BLOCK * Float.BYTES : 0;
    return scales + count * bytes;
  }

  static Element of(int code) throws DamagedFrameException {
    if (code >= ALL.length) {
      throw new DamagedFrameException("values of the unknown type " + code);
    }
    return ALL[code];
  }
}
