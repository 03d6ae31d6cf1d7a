package org.seraphim.client;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An attempt at a push that counts once ({@code docs/parameter-service.md}). Values are staged, and added when the
 * attempt commits, if no other attempt at the part has committed before. One thread uses it.
 */
public final class StagedPush {
  private final ServerMatrix matrix;
  private final DenseTransfer transfer;
  private final PushIdentity identity;
  /** The number of chunks that were staged on each lane. */
  private final Map<Integer, Integer> chunks = new HashMap<>();

  StagedPush(ServerMatrix matrix, DenseTransfer transfer, PushIdentity identity) {
    this.matrix = matrix;
    this.transfer = transfer;
    this.identity = identity;
  }

  /**
   * Stages values for columns of a row, and waits until the servers have them.
   *
   * @throws RefusedException.TokenClosed if the driver has moved on
   * @throws RefusedException.TooLarge if the servers have no memory for them
   */
  public StagedPush add(int row, long column, double[] values, int offset, int count) {
    matrix.checkRange(row, column, count, values.length - offset);
    MatrixMap map = transfer.map();
    transfer.run(column, count, Kind.DONE, range -> {
      int lane = map.laneOf(range.partition());
      int chunk = chunks.merge(lane, 1, Integer::sum) - 1;
      int at = offset + (int) (range.start() - column);
      Frame push = Requests.pushStaged(
          transfer.job(), map.matrix, identity, chunk, row, range, values, at);
      return matrix.session().lane(lane).send(push, true);
    });
    return this;
  }

  /** Stages a whole row. */
  public StagedPush add(int row, double[] values) {
    return add(row, 0, values, 0, values.length);
  }

  /**
   * Commits on every lane of the matrix, and waits. It may be called again after a fault.
   *
   * @return whether this attempt counts on every lane; if not, another one counts on some or all of them
   */
  public boolean commit() {
    List<Frame> answers = transfer.askLanes(Kind.COMMITTED, lane -> Requests.commit(
        transfer.job(), transfer.map().matrix, identity, chunks.getOrDefault(lane, 0)));
    return answers.stream().allMatch(answer -> Bytes.longAt(answer.meta, 0) == identity.attempt());
  }
}
