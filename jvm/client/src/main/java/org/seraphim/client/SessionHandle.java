package org.seraphim.client;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/**
 * What another process needs to use a session that this one has opened: the master, the number of the session, its
 * lanes and matrices, the shared secret and the limits. The session belongs to the process that opened it: a process
 * that is attached neither renews nor closes it. The secret is not part of {@link #toString}.
 */
public final class SessionHandle implements Serializable {
  private static final long serialVersionUID = 1;

  final String master;
  final int job;
  final byte[] secret;
  final ClientOptions options;
  final List<Endpoint> lanes;
  final Map<Integer, MatrixMap> matrices;

  SessionHandle(
      String master, int job, byte[] secret, ClientOptions options, List<Endpoint> lanes,
      Map<Integer, MatrixMap> matrices) {
    this.master = master;
    this.job = job;
    this.secret = secret;
    this.options = options;
    this.lanes = lanes;
    this.matrices = matrices;
  }

  /** The number of the session at its master. */
  public int session() {
    return job;
  }

  /** The address of the master. */
  public String master() {
    return master;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof SessionHandle)) {
      return false;
    }
    SessionHandle that = (SessionHandle) other;
    return that.job == job && that.master.equals(master) && that.lanes.toString().equals(lanes.toString());
  }

  @Override
  public int hashCode() {
    return 31 * master.hashCode() + job;
  }

  @Override
  public String toString() {
    return "session " + job + " of the master at " + master;
  }
}
