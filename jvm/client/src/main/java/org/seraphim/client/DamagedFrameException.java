package org.seraphim.client;

import java.io.IOException;

/** Bytes that are no frame: damage on the way, or another program at the other end. */
final class DamagedFrameException extends IOException {
  DamagedFrameException(String message) {
    super(message);
  }
}
