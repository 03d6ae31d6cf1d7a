package org.seraphim.client;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * The partial answers of a pull function, one for each partition, in the order of columns. The methods merge those of
 * the built-in functions.
 */
public final class PartialAnswers {
  private static final int COUNT_AT = 16;
  private static final int FIRST_AT = 24;

  private final Map<Integer, ByteBuffer> parts = new TreeMap<>();

  /** Reads the partial answers of one lane: a frame of kind {@code PulledFunction}. */
  void add(Frame answer) {
    checked(() -> {
      ByteBuffer meta = Bytes.of(answer.meta);
      int count = meta.getInt(COUNT_AT);
      meta.position(FIRST_AT);
      for (int i = 0; i < count; i++) {
        int partition = meta.getInt();
        meta.getInt();
        byte[] bytes = new byte[Math.toIntExact(meta.getLong())];
        meta.get(bytes);
        parts.put(partition, Bytes.of(bytes));
      }
      return null;
    });
  }

  private static <T> T checked(java.util.function.Supplier<T> read) {
    try {
      return read.get();
    } catch (BufferUnderflowException | ArithmeticException | NegativeArraySizeException
        | IndexOutOfBoundsException e) {
      throw new SeraphimException.BadAnswer("a partial answer of a function cannot be read: " + e, e);
    }
  }

  /** The bytes of each partition, in the order of columns. */
  public List<byte[]> bytes() {
    List<byte[]> all = new ArrayList<>();
    parts.values().forEach(part -> all.add(part.array()));
    return all;
  }

  /** The answer of {@code sum}, {@code norm_1}, {@code square_sum} or {@code dot}; that of {@code norm_2} squared. */
  public double sum() {
    return checked(() -> {
      RangeSum sum = new RangeSum();
      parts.values().forEach(part -> sum.append(part.rewind()));
      return sum.total();
    });
  }

  /** The answer of {@code gram} or another function with several sums. */
  public double[] sums() {
    return checked(() -> {
      List<RangeSum> sums = new ArrayList<>();
      for (ByteBuffer part : parts.values()) {
        long count = part.rewind().getLong();
        for (int i = 0; i < count; i++) {
          if (sums.size() <= i) {
            sums.add(new RangeSum());
          }
          sums.get(i).append(part);
        }
      }
      return sums.stream().mapToDouble(RangeSum::total).toArray();
    });
  }

  /** The answer of {@code count_non_zero}. */
  public long count() {
    return checked(() -> parts.values().stream().mapToLong(part -> part.rewind().getLong()).sum());
  }

  /** Whether {@code first_difference} has found one: some partition has an answer. */
  public boolean hasPresent() {
    return checked(() -> parts.values().stream().anyMatch(part -> part.rewind().get() == 1));
  }

  /** The largest of the answers of {@code max} or {@code norm_inf}; NaN for a matrix without columns. */
  public double largest() {
    return extreme(values -> values.stream().mapToDouble(x -> x).max().orElse(Double.NaN));
  }

  /** The smallest of the answers of {@code min}; NaN for a matrix without columns. */
  public double smallest() {
    return extreme(values -> values.stream().mapToDouble(x -> x).min().orElse(Double.NaN));
  }

  private double extreme(Function<List<Double>, Double> choose) {
    return checked(() -> {
      List<Double> values = new ArrayList<>();
      for (ByteBuffer part : parts.values()) {
        if (part.rewind().get() == 1) {
          part.getLong();
          values.add(part.getDouble());
        }
      }
      return choose.apply(values);
    });
  }
}
