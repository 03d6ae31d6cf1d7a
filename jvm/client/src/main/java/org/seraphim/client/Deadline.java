package org.seraphim.client;

import java.time.Duration;

/** The moment until which a call waits. */
final class Deadline {
  private final Duration limit;
  private final long end;

  private Deadline(Duration limit) {
    this.limit = limit;
    this.end = System.nanoTime() + limit.toNanos();
  }

  static Deadline in(Duration limit) {
    return new Deadline(limit);
  }

  long remainingNanos() {
    return Math.max(0, end - System.nanoTime());
  }

  boolean isOver() {
    return remainingNanos() == 0;
  }

  Duration limit() {
    return limit;
  }
}
