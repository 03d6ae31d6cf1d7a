package org.seraphim.client;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Where the partitions of a matrix lie: the first column and the lane of each. */
final class MatrixMap implements Serializable {
  private static final long serialVersionUID = 1;

  final int matrix;
  final String name;
  final int rows;
  final long columns;
  private final long[] starts;
  private final int[] owners;

  private MatrixMap(int matrix, String name, int rows, long columns, long[] starts, int[] owners) {
    this.matrix = matrix;
    this.name = name;
    this.rows = rows;
    this.columns = columns;
    this.starts = starts;
    this.owners = owners;
  }

  /** Reads an entry of {@code SessionMap}; null for a matrix that is no dense one of doubles by column. */
  static MatrixMap read(Map<?, ?> entry) {
    Map<?, ?> spec = (Map<?, ?>) entry.get("spec");
    if (!"f64".equals(spec.get("element")) || !"dense".equals(spec.get("storage"))
        || !"column".equals(spec.get("axis"))) {
      return null;
    }
    List<?> owners = (List<?>) entry.get("owners");
    long columns = (Long) spec.get("columns");
    long[] starts = starts((Map<?, ?>) spec.get("partitioner"), columns, owners.size());
    if (starts == null) {
      return null;
    }
    int rows = Math.toIntExact((Long) spec.get("rows"));
    int[] lanes = owners.stream().mapToInt(lane -> Math.toIntExact((Long) lane)).toArray();
    int matrix = Math.toIntExact((Long) entry.get("matrix"));
    return new MatrixMap(matrix, (String) spec.get("name"), rows, columns, starts, lanes);
  }

  private static long[] starts(Map<?, ?> partitioner, long columns, int count) {
    if ("explicit".equals(partitioner.get("kind"))) {
      return ((List<?>) partitioner.get("starts")).stream().mapToLong(start -> (Long) start).toArray();
    }
    if (!"range".equals(partitioner.get("kind"))) {
      return null;
    }
    long[] starts = new long[count];
    for (int i = 0; i < count; i++) {
      starts[i] = RangePartitioner.start(i, count, columns);
    }
    return starts;
  }

  int partitions() {
    return starts.length;
  }

  int laneOf(int partition) {
    return owners[partition];
  }

  /** The lanes with partitions, ascending. */
  int[] lanes() {
    return java.util.Arrays.stream(owners).sorted().distinct().toArray();
  }

  /**
   * Cuts the columns {@code from} to {@code to} at the partitions, and into ranges of at most {@code most} columns.
   * Ranges of different partitions alternate, so that their lanes work at the same time.
   */
  List<ColumnRange> cut(long from, long to, int most) {
    List<ColumnRange> ranges = new ArrayList<>();
    long[] next = new long[starts.length];
    boolean isLast = false;
    for (int round = 0; !isLast; round++) {
      isLast = true;
      for (int i = 0; i < starts.length; i++) {
        long end = Math.min(to, i + 1 < starts.length ? starts[i + 1] : columns);
        long start = round == 0 ? Math.max(from, starts[i]) : next[i];
        next[i] = Math.min(start + most, end);
        if (start < end) {
          ranges.add(new ColumnRange(i, start, next[i]));
          isLast &= next[i] >= end;
        }
      }
    }
    return ranges;
  }
}
