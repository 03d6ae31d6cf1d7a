package org.seraphim.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a matrix of dense rows of doubles is: partitioned by column, so that each row is a vector and functions run on
 * whole rows. Pushes are added.
 */
public final class MatrixSpec {
  /** Partitions are cut at multiples of this number of columns, so that partial sums are short. */
  static final int LEAF_COLUMNS = 256;

  private final String name;
  private final int rows;
  private final long columns;
  private final int partitions;

  /**
   * A matrix named {@code name}, unique in its session, of {@code rows} rows and {@code columns} columns in at most
   * {@code partitions} partitions.
   *
   * @throws IllegalArgumentException if a number is below 1
   */
  public MatrixSpec(String name, int rows, long columns, int partitions) {
    if (rows < 1 || columns < 1 || partitions < 1) {
      throw new IllegalArgumentException("matrix \"" + name + "\" has " + rows + " rows, " + columns
          + " columns and " + partitions + " partitions, expected at least 1 of each");
    }
    this.name = name;
    this.rows = rows;
    this.columns = columns;
    this.partitions = partitions;
  }

  /** Its name. */
  public String name() {
    return name;
  }

  /** Number of rows. */
  public int rows() {
    return rows;
  }

  /** Number of columns. */
  public long columns() {
    return columns;
  }

  /** Bytes of all its values. */
  public long bytes() {
    return Math.multiplyExact(Math.multiplyExact(columns, rows), Double.BYTES);
  }

  /** The first column of each partition. */
  long[] starts() {
    long leaves = (columns + LEAF_COLUMNS - 1) / LEAF_COLUMNS;
    int count = (int) Math.min(partitions, leaves);
    long[] starts = new long[count];
    for (int i = 0; i < count; i++) {
      // Without overflow: i and count are below 2^31, a remainder as well.
      starts[i] = (leaves / count * i + leaves % count * i / count) * LEAF_COLUMNS;
    }
    return starts;
  }

  Map<String, Object> json() {
    List<Object> starts = new ArrayList<>();
    for (long start : starts()) {
      starts.add(start);
    }
    Map<String, Object> spec = new LinkedHashMap<>();
    spec.put("name", name);
    spec.put("element", "f64");
    spec.put("rows", rows);
    spec.put("columns", columns);
    spec.put("axis", "column");
    spec.put("storage", "dense");
    spec.put("partitioner", fields("kind", "explicit", "starts", starts));
    spec.put("initializer", fields("kind", "zero"));
    spec.put("rule", fields("rule", "add"));
    spec.put("consistency", "asp");
    spec.put("seed", 0);
    return spec;
  }

  private static Map<String, Object> fields(Object... namesAndValues) {
    Map<String, Object> fields = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      fields.put((String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return fields;
  }
}
