package org.seraphim.client;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;

/**
 * Transfers long rows in chunks that overlap: several requests to each lane are under way, and answers are read while
 * others are written. Memory does not grow with the row.
 */
final class DenseTransfer {
  /** Requests that are under way at each lane. */
  private static final int WINDOW = 6;

  private final ParameterSession session;
  private final MatrixMap map;

  DenseTransfer(ParameterSession session, MatrixMap map) {
    this.session = session;
    this.map = map;
  }

  MatrixMap map() {
    return map;
  }

  int job() {
    return session.number();
  }

  void pull(int row, long column, double[] out, int offset, int count) {
    run(column, count, Kind.PULLED, range -> {
      Frame pull = Requests.pull(session.number(), map.matrix, row, range);
      int at = offset + (int) (range.start() - column);
      return session.lane(map.laneOf(range.partition())).send(pull, true, out, at);
    });
  }

  void push(int row, long column, double[] values, int offset, int count) {
    run(column, count, Kind.DONE, range -> {
      int at = offset + (int) (range.start() - column);
      Frame push = Requests.push(session.number(), map.matrix, row, range, values, at);
      return session.lane(map.laneOf(range.partition())).send(push, false);
    });
  }

  /**
   * Cuts columns into chunks, sends a request for each, and waits for all answers, also those after a fault. The
   * deadline is that of each answer. It counts as one wait.
   */
  void run(long column, int count, Kind answer, Function<ColumnRange, PendingRequest> send) {
    session.countWait();
    int most = WINDOW * map.lanes().length;
    ArrayDeque<PendingRequest> underWay = new ArrayDeque<>();
    Iterator<ColumnRange> ranges = map.cut(column, column + count, BufferPool.CHUNK_DOUBLES).iterator();
    Deadline deadline = Deadline.in(session.options().deadline());
    SeraphimException first = null;
    while (!underWay.isEmpty() || first == null && ranges.hasNext()) {
      while (first == null && ranges.hasNext() && underWay.size() < most) {
        underWay.add(send.apply(ranges.next()));
      }
      try {
        underWay.poll().await(deadline, answer);
        deadline = first == null ? Deadline.in(session.options().deadline()) : deadline;
      } catch (SeraphimException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }

  /** Sends a request to each lane of the matrix, and waits for all answers. */
  List<Frame> askLanes(Kind answer, Function<Integer, Frame> request) {
    List<PendingRequest> requests = new ArrayList<>();
    for (int lane : map.lanes()) {
      requests.add(session.lane(lane).send(request.apply(lane), true));
    }
    return session.awaitAll(requests, answer);
  }
}
