package org.seraphim.client;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * A call of a PS function ({@code docs/ps-functions.md}): its name, the rows that it reads and writes, and its
 * argument. Calls do not change.
 */
public final class FunctionCall {
  private static final int FIXED_BYTES = 24;

  private final String name;
  private final int version;
  private final int[] reads;
  private final int[] writes;
  private final byte[] argument;

  private FunctionCall(String name, int version, int[] reads, int[] writes, byte[] argument) {
    this.name = name;
    this.version = version;
    this.reads = reads.clone();
    this.writes = writes.clone();
    this.argument = argument;
  }

  /** A call without argument, of version 1 of the function. */
  public static FunctionCall of(String name, int[] reads, int[] writes) {
    return new FunctionCall(name, 1, reads, writes, new byte[0]);
  }

  /** The same call with another argument, as {@link Argument} builds it. */
  public FunctionCall with(Argument argument) {
    return new FunctionCall(name, version, reads, writes, argument.bytes());
  }

  /** The same call with a number as argument. */
  public FunctionCall with(double number) {
    return with(new Argument().number(number));
  }

  /** The same call of another version of the function. */
  public FunctionCall withVersion(int newVersion) {
    return new FunctionCall(name, newVersion, reads, writes, argument);
  }

  /** The name of the function. */
  public String name() {
    return name;
  }

  int size() {
    return FIXED_BYTES + name.getBytes(StandardCharsets.UTF_8).length
        + (reads.length + writes.length) * Integer.BYTES + argument.length;
  }

  void write(ByteBuffer out) {
    byte[] utf8 = name.getBytes(StandardCharsets.UTF_8);
    out.putInt(version).putInt(utf8.length).putInt(reads.length).putInt(writes.length).putLong(argument.length);
    out.put(utf8);
    for (int row : reads) {
      out.putInt(row);
    }
    for (int row : writes) {
      out.putInt(row);
    }
    out.put(argument);
  }

  /** The argument of a call: values one after the other, without names and without padding. */
  public static final class Argument {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    /** Appends a double. */
    public Argument number(double value) {
      return append(ByteBuffer.allocate(Double.BYTES).order(ByteOrder.LITTLE_ENDIAN).putDouble(value));
    }

    /** Appends a whole number of 64 bits. */
    public Argument whole(long value) {
      return append(ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(value));
    }

    /** Appends a list of doubles. */
    public Argument numbers(double... values) {
      ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES + values.length * Double.BYTES);
      bytes.order(ByteOrder.LITTLE_ENDIAN).putLong(values.length);
      bytes.asDoubleBuffer().put(values);
      return append(bytes);
    }

    private Argument append(ByteBuffer bytes) {
      out.write(bytes.array(), 0, bytes.capacity());
      return this;
    }

    byte[] bytes() {
      return out.toByteArray();
    }
  }
}
