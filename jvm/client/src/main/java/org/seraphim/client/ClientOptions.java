package org.seraphim.client;

import java.io.Serializable;
import java.time.Duration;
import java.util.List;

/** Limits of a client. They do not change; each {@code with...} method returns other options. */
public final class ClientOptions implements Serializable {
  private static final long serialVersionUID = 1;
  private static final ClientOptions DEFAULTS = new ClientOptions(
      Duration.ofSeconds(120), Duration.ofSeconds(30), Duration.ofSeconds(10), Duration.ofSeconds(60), 0, "checkpoint",
      "");

  private static final List<String> DURABILITIES = List.of("checkpoint", "log", "synced-log", "replica");

  private final Duration deadline;
  private final Duration silenceLimit;
  private final Duration reconnectLimit;
  private final Duration lease;
  private final int servers;
  private final String durability;
  private final String checkpoint;

  private ClientOptions(
      Duration deadline, Duration silenceLimit, Duration reconnectLimit, Duration lease, int servers,
      String durability, String checkpoint) {
    this.deadline = deadline;
    this.silenceLimit = silenceLimit;
    this.reconnectLimit = reconnectLimit;
    this.lease = lease;
    this.servers = servers;
    this.durability = durability;
    this.checkpoint = checkpoint;
  }

  /** A deadline of 120 s, connections cut after 30 s of silence and made again within 10 s, a lease of 60 s. */
  public static ClientOptions defaults() {
    return DEFAULTS;
  }

  /** The time within which each request must be answered. */
  public ClientOptions withDeadline(Duration value) {
    return new ClientOptions(value, silenceLimit, reconnectLimit, lease, servers, durability, checkpoint);
  }

  /** The time without any byte, while requests are under way, after which a connection is cut and made again. */
  public ClientOptions withSilenceLimit(Duration value) {
    return new ClientOptions(deadline, value, reconnectLimit, lease, servers, durability, checkpoint);
  }

  /** The time within which a lost connection must be made again. */
  public ClientOptions withReconnectLimit(Duration value) {
    return new ClientOptions(deadline, silenceLimit, value, lease, servers, durability, checkpoint);
  }

  /** How long the session lives after the last request to the master: from 1 s to a day. */
  public ClientOptions withLease(Duration value) {
    return new ClientOptions(deadline, silenceLimit, reconnectLimit, value, servers, durability, checkpoint);
  }

  /** The number of servers that the session uses; 0: all that are there. */
  public ClientOptions withServers(int value) {
    return new ClientOptions(deadline, silenceLimit, reconnectLimit, lease, value, durability, checkpoint);
  }

  /**
   * What of the session outlives the death of a server: {@code checkpoint} (nothing: the session ends), {@code log} or
   * {@code synced-log} (everything, on servers with a write-ahead log), {@code replica} (everything: another server has
   * the same partitions and takes over; at least two servers).
   */
  public ClientOptions withDurability(String value) {
    if (!DURABILITIES.contains(value)) {
      throw new IllegalArgumentException("the durability \"" + value + "\" is unknown; known are " + DURABILITIES);
    }
    return new ClientOptions(deadline, silenceLimit, reconnectLimit, lease, servers, value, checkpoint);
  }

  /**
   * The name of the checkpoints ({@link ParameterSession#checkpoint}) with whose newest one the session begins; empty, the
   * default: it begins without matrices.
   */
  public ClientOptions withCheckpoint(String value) {
    return new ClientOptions(deadline, silenceLimit, reconnectLimit, lease, servers, durability, value);
  }

  String checkpoint() {
    return checkpoint;
  }

  String durability() {
    return durability;
  }

  int servers() {
    return servers;
  }

  Duration deadline() {
    return deadline;
  }

  Duration silenceLimit() {
    return silenceLimit;
  }

  Duration reconnectLimit() {
    return reconnectLimit;
  }

  Duration lease() {
    return lease;
  }
}
