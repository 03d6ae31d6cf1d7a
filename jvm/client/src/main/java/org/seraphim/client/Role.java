package org.seraphim.client;

/** What the client says it is in its {@code Hello}. */
enum Role {
  /** A program that talks to the master. */
  TOOL(1),
  /** A session at a lane. */
  SESSION(3);

  final int code;

  Role(int code) {
    this.code = code;
  }
}
