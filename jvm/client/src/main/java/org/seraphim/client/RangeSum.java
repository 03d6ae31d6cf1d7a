package org.seraphim.client;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A sum over columns whose last bits do not depend on the partitions. Its additions follow a tree over the column
 * numbers, which {@code crates/matrix/src/function/sum.rs} describes: leaves of 256 columns, then pairs. The partial
 * answer of a partition has the nodes that lie wholly in it, and the separate terms of the leaves that its ends cut.
 */
final class RangeSum {
  private static final int LEAF = MatrixSpec.LEAF_COLUMNS;
  /** Interleaved sums in a leaf. */
  private static final int INTERLEAVED = 16;

  private final List<Node> nodes = new ArrayList<>();
  private final double[] tail = new double[LEAF];
  private int tailLength;
  private long end;

  private static final class Node {
    final int level;
    final long index;
    final double sum;

    Node(int level, long index, double sum) {
      this.level = level;
      this.index = index;
      this.sum = sum;
    }
  }

  /** Reads the next partial sum of {@code in}, and adds it. Parts come in the order of columns. */
  void append(ByteBuffer in) {
    long start = in.getLong();
    long partEnd = in.getLong();
    if (start != end) {
      throw new SeraphimException.BadAnswer(
          "a partial sum begins at column " + start + ", expected " + end, null);
    }
    for (long head = in.getLong(); head > 0; head--) {
      add(in.getDouble());
    }
    for (long count = in.getLong(); count > 0; count--) {
      int level = in.getInt();
      long index = in.getLong();
      push(new Node(level, index, in.getDouble()));
    }
    long tails = in.getLong();
    end = partEnd - tails;
    for (; tails > 0; tails--) {
      add(in.getDouble());
    }
  }

  private void add(double term) {
    tail[tailLength++] = term;
    end++;
    if (tailLength == LEAF) {
      tailLength = 0;
      push(new Node(0, end / LEAF - 1, leafSum()));
    }
  }

  /** Adds the next node, and joins pairs of nodes. */
  private void push(Node next) {
    Node node = next;
    while (!nodes.isEmpty() && node.index % 2 == 1) {
      Node last = nodes.get(nodes.size() - 1);
      if (last.level != node.level || last.index + 1 != node.index) {
        break;
      }
      node = new Node(node.level + 1, node.index / 2, last.sum + node.sum);
      nodes.remove(nodes.size() - 1);
    }
    nodes.add(node);
  }

  private double leafSum() {
    double[] sums = new double[INTERLEAVED];
    for (int i = 0; i < LEAF; i++) {
      sums[i % INTERLEAVED] += tail[i];
    }
    for (int width = INTERLEAVED / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; i++) {
        sums[i] += sums[i + width];
      }
    }
    return sums[0];
  }

  /** The sum over all columns. Nothing can be added afterwards. */
  double total() {
    double total = 0;
    for (Node node : nodes) {
      total += node.sum;
    }
    if (tailLength > 0) {
      java.util.Arrays.fill(tail, tailLength, LEAF, 0);
      total += leafSum();
    }
    return total;
  }
}
