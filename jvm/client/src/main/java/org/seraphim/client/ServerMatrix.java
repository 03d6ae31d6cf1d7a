package org.seraphim.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A matrix of dense rows of doubles on servers, partitioned by column. Its methods may be called by several threads.
 *
 * <p>Requests to a lane are carried out in the order in which they were sent. Reads wait for their answers. Writes
 * return when they are sent: reads of this process that are sent later see them. Other processes see them after
 * {@link #await(List)}.
 *
 * <p>Every method throws a {@link SeraphimException} if the service refuses a request or cannot be reached.
 */
public final class ServerMatrix {
  /** The most requests in a batch. */
  private static final int BATCH_FRAMES = 256;

  private final ParameterSession session;
  private final MatrixMap map;
  private final DenseTransfer transfer;

  ServerMatrix(ParameterSession session, MatrixMap map) {
    this.session = session;
    this.map = map;
    this.transfer = new DenseTransfer(session, map);
  }

  /** Its number in the session. */
  public int number() {
    return map.matrix;
  }

  /** Its name. */
  public String name() {
    return map.name;
  }

  /** Number of rows. */
  public int rows() {
    return map.rows;
  }

  /** Number of columns. */
  public long columns() {
    return map.columns;
  }

  /** The session that has this matrix. */
  public ParameterSession session() {
    return session;
  }

  /** Reads a whole row of at most 2^31 - 1 columns. */
  public double[] pull(int row) {
    double[] values = new double[Math.toIntExact(map.columns)];
    pull(row, 0, values, 0, values.length);
    return values;
  }

  /** Reads {@code count} columns from {@code column} on into {@code out} from {@code offset} on. */
  public void pull(int row, long column, double[] out, int offset, int count) {
    checkRange(row, column, count, out.length - offset);
    transfer.pull(row, column, out, offset, count);
  }

  /**
   * Adds values to columns of a row, and waits until all are added. A plain push has no identity: if its connection is
   * lost, it fails with {@link SeraphimException.ConnectionLost}, and it is not known which columns have changed.
   * {@link #stage} may be repeated.
   */
  public void push(int row, long column, double[] values, int offset, int count) {
    checkRange(row, column, count, values.length - offset);
    transfer.push(row, column, values, offset, count);
  }

  /** Begins a push that counts once, however often it is attempted. */
  public StagedPush stage(PushIdentity identity) {
    return new StagedPush(this, transfer, identity);
  }

  /** Runs a pull function on all partitions. */
  public PartialAnswers pullFunction(FunctionCall call) {
    return pullFunctions(List.of(call)).get(0);
  }

  /** Runs pull functions, each on all partitions, in one round trip for up to 256 of them. */
  public List<PartialAnswers> pullFunctions(List<FunctionCall> calls) {
    List<PartialAnswers> answers = new ArrayList<>();
    for (int from = 0; from < calls.size(); from += BATCH_FRAMES) {
      answers.addAll(pullBatch(calls.subList(from, Math.min(calls.size(), from + BATCH_FRAMES))));
    }
    return answers;
  }

  private List<PartialAnswers> pullBatch(List<FunctionCall> calls) {
    List<Frame> frames = new ArrayList<>();
    calls.forEach(call -> frames.add(Requests.pullFunction(session.number(), map.matrix, call)));
    Frame request = frames.size() == 1 ? frames.get(0) : Requests.batch(frames);
    Kind kind = frames.size() == 1 ? Kind.PULLED_FUNCTION : Kind.BATCH;
    List<Frame> byLane = session.awaitAll(sendToAll(request, true).requests(), kind);
    List<PartialAnswers> answers = new ArrayList<>();
    calls.forEach(call -> answers.add(new PartialAnswers()));
    for (Frame lane : byLane) {
      List<Frame> own = frames.size() == 1 ? List.of(lane) : Batches.answers(lane, frames.size(), toString());
      for (int i = 0; i < own.size(); i++) {
        answers.get(i).add(own.get(i));
      }
    }
    return answers;
  }

  /**
   * Runs push functions, one directly after the other, without a wait. If a connection is lost before the answer, the
   * write fails with {@link SeraphimException.ConnectionLost}: it must not run twice.
   */
  public Write pushFunctions(FunctionCall... calls) {
    return sendToAll(Requests.pushFunction(session.number(), map.matrix, Arrays.asList(calls)), false);
  }

  /**
   * The same for functions that have the same effect when they run twice: they read no row that they write, and
   * nobody else writes the rows that they read or write before the answer. They are sent again after a loss.
   */
  public Write pushRepeatableFunctions(FunctionCall... calls) {
    return sendToAll(Requests.pushFunction(session.number(), map.matrix, Arrays.asList(calls)), true);
  }

  /** Waits until every lane has checked that it could run push functions. Changes nothing. */
  public void tryFunctions(FunctionCall... calls) {
    Frame request = Requests.tryFunction(session.number(), map.matrix, Arrays.asList(calls));
    session.awaitAll(sendToAll(request, true).requests(), Kind.DONE);
  }

  /** Runs push functions once for a part of a token, without a wait: a repeat, of any attempt, changes nothing. */
  public Write commitFunctions(PushIdentity identity, FunctionCall... calls) {
    return sendToAll(
        Requests.commitFunction(session.number(), map.matrix, identity, Arrays.asList(calls)), true);
  }

  /** Refuses all later attempts of this token and of smaller ones, and frees what they have staged. Without a wait. */
  public Write closeToken(long token) {
    return sendToAll(Requests.closeToken(session.number(), map.matrix, token), true);
  }

  /** Waits until all writes are done, and throws the first fault. One wait, for any number of writes. */
  public void await(List<Write> writes) {
    if (!writes.stream().allMatch(Write::isDone)) {
      session.countWait();
    }
    Deadline deadline = Deadline.in(session.options().deadline());
    SeraphimException first = null;
    for (Write write : writes) {
      for (PendingRequest request : write.requests()) {
        try {
          request.await(deadline);
        } catch (SeraphimException e) {
          first = first == null ? e : first;
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }

  private Write sendToAll(Frame frame, boolean mayRepeat) {
    List<PendingRequest> requests = new ArrayList<>();
    for (int lane : map.lanes()) {
      requests.add(session.lane(lane).send(frame, mayRepeat));
    }
    return new Write(requests);
  }

  void checkRange(int row, long column, int count, int room) {
    if (row < 0 || row >= map.rows || column < 0 || count < 0 || column > map.columns - count || count > room) {
      throw new IllegalArgumentException("row " + row + ", columns " + column + " to " + (column + count)
          + " with room for " + room + " values: matrix \"" + map.name + "\" has " + map.rows + " rows and "
          + map.columns + " columns");
    }
  }

  @Override
  public String toString() {
    return "matrix \"" + map.name + "\" of " + session;
  }
}
