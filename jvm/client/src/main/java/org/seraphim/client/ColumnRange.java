package org.seraphim.client;

/** Columns {@code start} to {@code end} (exclusive), which lie in one partition. */
final class ColumnRange {
  private final int partition;
  private final long start;
  private final long end;

  ColumnRange(int partition, long start, long end) {
    this.partition = partition;
    this.start = start;
    this.end = end;
  }

  int partition() {
    return partition;
  }

  long start() {
    return start;
  }

  long end() {
    return end;
  }

  int count() {
    return Math.toIntExact(end - start);
  }
}
