package org.seraphim.client;

import java.io.Serializable;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.stream.Collectors;

/** Where a master or a lane of a server accepts connections, and as what a client connects. */
final class Endpoint implements Serializable {
  private static final long serialVersionUID = 1;

  private final String name;
  private final String host;
  private final int port;
  final Role role;
  final int job;
  final int lane;
  /** The lane that takes over when this one is lost, or null. */
  final Endpoint standby;

  private Endpoint(String name, String address, Role role, int job, int lane, Endpoint standby) {
    String hostAndPort = address.startsWith("tcp:") ? address.substring("tcp:".length()) : address;
    int colon = hostAndPort.lastIndexOf(':');
    String host = colon < 0 ? "" : hostAndPort.substring(0, colon);
    this.host = host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
    this.port = port(address, colon < 0 ? "" : hostAndPort.substring(colon + 1));
    this.name = name + " at " + hostAndPort;
    this.role = role;
    this.job = job;
    this.lane = lane;
    this.standby = standby;
  }

  private static int port(String address, String text) {
    int port = text.matches("[0-9]{1,5}") ? Integer.parseInt(text) : 0;
    if (port < 1 || port > 65535) {
      throw new IllegalArgumentException("the address \"" + address + "\" is not HOST:PORT");
    }
    return port;
  }

  /** The master at {@code HOST:PORT}. */
  static Endpoint master(String address) {
    return new Endpoint("the master", address, Role.TOOL, 0, 0, null);
  }

  /**
   * Lane {@code lane} of a server with these addresses, for session {@code job}. {@code standby} is the lane that takes
   * over, or null.
   */
  static Endpoint lane(List<String> addresses, int job, int lane, Endpoint standby) {
    List<String> tcp = addresses.stream().filter(one -> one.startsWith("tcp:")).collect(Collectors.toList());
    if (tcp.isEmpty()) {
      throw new IllegalArgumentException("a server has the addresses " + addresses
          + ", expected one that begins with tcp: start it with --listen HOST:PORT");
    }
    return new Endpoint("the server", tcp.get(0), Role.SESSION, job, lane, standby);
  }

  InetSocketAddress socketAddress() {
    return new InetSocketAddress(host, port);
  }

  @Override
  public String toString() {
    return name;
  }
}
