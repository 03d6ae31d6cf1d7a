package org.seraphim.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A session of the parameter service: matrices on servers for a program that is not a job of Seraphim. All threads of
 * the process share it, with one connection to each lane.
 *
 * <p>The process that opens a session renews its lease until it closes it; then the matrices are freed. If the process
 * dies, they are freed when the lease expires. Other processes use the session by its {@link #handle}.
 *
 * <p>Every method throws a {@link SeraphimException} if the service refuses a request or cannot be reached.
 */
public final class ParameterSession implements AutoCloseable {
  private final String masterAddress;
  private final byte[] secret;
  private final ClientOptions options;
  private final boolean isOwner;
  private final BufferPool buffers = new BufferPool();
  private final AtomicLong waits = new AtomicLong();
  private final Map<Integer, MatrixMap> matrices = new ConcurrentHashMap<>();
  private final Connection master;
  private final SessionTimer timer;
  private int job;
  private List<Endpoint> lanes;
  private Connection[] connections;
  private volatile boolean isClosed;

  private ParameterSession(String master, byte[] secret, ClientOptions options, boolean isOwner) {
    this.masterAddress = master;
    this.secret = secret.clone();
    this.options = options;
    this.isOwner = isOwner;
    this.master = new Connection(Endpoint.master(master), this.secret, options, buffers, () -> null);
    this.timer = new SessionTimer(this);
  }

  /**
   * Opens a session at the master {@code HOST:PORT}, with the limits {@link ClientOptions#defaults}.
   *
   * @param secret the shared secret of the service, empty if it has none
   * @param name what {@code seraphim status} shows
   */
  public static ParameterSession open(String master, byte[] secret, String name) {
    return open(master, secret, name, ClientOptions.defaults());
  }

  /** Opens a session with other limits. */
  public static ParameterSession open(String master, byte[] secret, String name, ClientOptions options) {
    ParameterSession session = new ParameterSession(master, secret, options, true);
    try {
      Frame open = Requests.openSession(
          name, options.lease().toMillis(), options.servers(), options.durability(),
          options.checkpoint());
      // A repeat opens another session; the lost one ends with its lease.
      session.readMap(session.await(session.master.send(open, true), Kind.SESSION_MAP));
      session.timer.start(options.lease());
      return session;
    } catch (RuntimeException e) {
      session.closeConnections();
      throw e;
    }
  }

  /** Uses a session that another process has opened and renews. Nothing is sent before it is needed. */
  public static ParameterSession attach(SessionHandle handle) {
    ParameterSession session = new ParameterSession(handle.master, handle.secret, handle.options, false);
    session.job = handle.job;
    session.setLanes(handle.lanes);
    session.matrices.putAll(handle.matrices);
    session.timer.start(handle.options.lease());
    return session;
  }

  /** What another process needs to use this session. It contains the shared secret. */
  public SessionHandle handle() {
    return new SessionHandle(masterAddress, job, secret, options, lanes, new TreeMap<>(matrices));
  }

  /** The number of the session at its master. */
  public int number() {
    return job;
  }

  /** The number of lanes of all servers. */
  public int laneCount() {
    return lanes.size();
  }

  /** How often threads of this process have waited for the service, since the session was opened or attached. */
  public long waits() {
    return waits.get();
  }

  /** Creates a matrix of zeros. If the session has one with this name and spec, that is returned. */
  public ServerMatrix createMatrix(MatrixSpec spec) {
    readMap(await(master.send(Requests.createMatrix(job, spec), true), Kind.SESSION_MAP));
    return matrix(spec.name());
  }

  /** The matrix of this name, perhaps created by another process. */
  public ServerMatrix matrix(String name) {
    MatrixMap map = find(name);
    if (map == null) {
      readMap(await(master.send(Requests.askMap(job), true), Kind.SESSION_MAP));
      map = find(name);
    }
    if (map == null) {
      List<String> names = new ArrayList<>();
      matrices.values().forEach(one -> names.add(one.name));
      throw new IllegalArgumentException("session " + job + " has no dense matrix of doubles by column named \""
          + name + "\"; it has: " + names);
    }
    return new ServerMatrix(this, map);
  }

  private MatrixMap find(String name) {
    return matrices.values().stream().filter(one -> one.name.equals(name)).findFirst().orElse(null);
  }

  /**
   * Writes a checkpoint of all matrices, with which {@link ClientOptions#withCheckpoint} opens another session. It has what
   * was answered before the call, and perhaps a part of what other threads and processes send during it. Training may go on
   * meanwhile. Large sessions need a longer {@linkplain ClientOptions#withDeadline deadline}.
   *
   * @param name letters, digits, {@code -}, {@code _} and {@code .}; it belongs to one session at a time
   */
  public void checkpoint(String name) {
    await(master.send(Requests.checkpointSession(job, name), true), Kind.DONE);
  }

  /** Frees a matrix. */
  public void drop(ServerMatrix matrix) {
    await(master.send(Requests.dropMatrix(job, matrix.number()), true), Kind.DONE);
    matrices.remove(matrix.number());
  }

  /** Ends the session and frees its matrices, if this process has opened it. It may be called twice. */
  @Override
  public void close() {
    if (isClosed) {
      return;
    }
    isClosed = true;
    timer.stop();
    try {
      if (isOwner) {
        await(master.send(Requests.closeSession(job), true), Kind.DONE);
      }
    } finally {
      closeConnections();
    }
  }

  private void closeConnections() {
    timer.stop();
    master.close();
    for (Connection connection : connections == null ? new Connection[0] : connections) {
      connection.close();
    }
  }

  private void readMap(Frame frame) {
    SessionMap map = SessionMap.read(frame);
    if (lanes == null) {
      job = map.job;
      setLanes(map.lanes);
    }
    matrices.putAll(map.matrices);
    matrices.keySet().retainAll(map.matrices.keySet());
  }

  private void setLanes(List<Endpoint> endpoints) {
    lanes = new ArrayList<>(endpoints);
    connections = new Connection[lanes.size()];
    for (int i = 0; i < connections.length; i++) {
      connections[i] = new Connection(lanes.get(i), secret, options, buffers, this::reasonOfEnd);
    }
  }

  /** Asks the master whether the session has ended, when a server cannot be reached. Null: it has not, or who knows. */
  private SeraphimException reasonOfEnd() {
    try {
      master.send(Requests.askMap(job), true).await(Deadline.in(options.reconnectLimit()));
      return null;
    } catch (RefusedException.SessionEnded | RefusedException.NoSuchSession e) {
      return e;
    } catch (SeraphimException e) {
      return null;
    }
  }

  Connection lane(int lane) {
    return connections[lane];
  }

  ClientOptions options() {
    return options;
  }

  /** Waits for one answer. */
  Frame await(PendingRequest request, Kind kind) {
    waits.incrementAndGet();
    return request.await(Deadline.in(options.deadline()), kind);
  }

  /** Waits for several answers at once. All are there before the first fault is thrown. */
  List<Frame> awaitAll(List<PendingRequest> requests, Kind kind) {
    waits.incrementAndGet();
    Deadline deadline = Deadline.in(options.deadline());
    List<Frame> frames = new ArrayList<>();
    SeraphimException first = null;
    for (PendingRequest request : requests) {
      try {
        frames.add(request.await(deadline, kind));
      } catch (SeraphimException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
    return frames;
  }

  /** Counts a wait that consists of several. */
  void countWait() {
    waits.incrementAndGet();
  }

  /** Renews the lease, without a wait. */
  void renew() {
    if (isOwner) {
      master.send(Requests.renewSession(job), true);
    }
  }

  /** Cuts connections that are silent. */
  void checkSilence() {
    master.checkSilence();
    for (Connection connection : connections) {
      connection.checkSilence();
    }
  }

  @Override
  public String toString() {
    return "session " + job + " of the master at " + masterAddress;
  }
}
