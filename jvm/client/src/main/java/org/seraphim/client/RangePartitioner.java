package org.seraphim.client;

import java.math.BigInteger;

/** The partitioner {@code range}: partition i of n has the keys from {@code floor(i * bound / n)} on. */
final class RangePartitioner {
  private RangePartitioner() {}

  /** The first key of partition {@code i} of {@code count}, of keys below {@code bound}. */
  static long start(int i, int count, long bound) {
    return BigInteger.valueOf(i).multiply(BigInteger.valueOf(bound)).divide(BigInteger.valueOf(count)).longValueExact();
  }
}
