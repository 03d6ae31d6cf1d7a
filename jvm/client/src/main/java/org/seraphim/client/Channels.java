package org.seraphim.client;

import java.io.IOException;
import java.nio.channels.SocketChannel;

/** Closes channels. */
final class Channels {
  private Channels() {}

  /** Closes a channel that is of no use any more, so that it does not matter whether this succeeds. */
  static void close(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      // It is of no use any more.
    }
  }
}
