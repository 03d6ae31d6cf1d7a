package org.seraphim.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Where the matrices of a session lie, as the master tells it: a frame of kind {@code SessionMap}. */
final class SessionMap {
  final int job;
  /** The lanes. Partitions name a lane by its position in this list. */
  final List<Endpoint> lanes;
  /** The matrices that this client can use, by number. */
  final Map<Integer, MatrixMap> matrices;

  private SessionMap(int job, List<Endpoint> lanes, Map<Integer, MatrixMap> matrices) {
    this.job = job;
    this.lanes = lanes;
    this.matrices = matrices;
  }

  static SessionMap read(Frame frame) {
    try {
      Map<?, ?> map = (Map<?, ?>) Json.parse(frame.meta);
      int job = Math.toIntExact((Long) map.get("job"));
      List<Endpoint> lanes = new ArrayList<>();
      for (Object lane : (List<?>) map.get("lanes")) {
        lanes.add(readLane((Map<?, ?>) lane, job));
      }
      Map<Integer, MatrixMap> matrices = new TreeMap<>();
      for (Object entry : (List<?>) map.get("matrices")) {
        MatrixMap matrix = MatrixMap.read((Map<?, ?>) entry);
        if (matrix != null) {
          matrices.put(matrix.matrix, matrix);
        }
      }
      return new SessionMap(job, lanes, matrices);
    } catch (DamagedFrameException | ClassCastException | NullPointerException | ArithmeticException e) {
      throw new SeraphimException.BadAnswer("the master sent a map of the session that cannot be read: " + e, e);
    }
  }

  private static Endpoint readLane(Map<?, ?> lane, int job) {
    List<String> addresses = new ArrayList<>();
    ((List<?>) lane.get("addresses")).forEach(address -> addresses.add((String) address));
    Map<?, ?> standby = (Map<?, ?>) lane.get("standby");
    return Endpoint.lane(
        addresses, job, Math.toIntExact((Long) lane.get("lane")), standby == null ? null : readLane(standby, job));
  }
}
