package org.seraphim.client;

import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Renews the lease of a session, and cuts connections that are silent, in a thread of its own. */
final class SessionTimer {
  /** The lease is renewed after this fraction (1/n) of its time. */
  private static final int RENEWALS = 4;
  private static final long CHECK_MILLIS = 250;

  private final ParameterSession session;
  private final ScheduledThreadPoolExecutor executor;

  SessionTimer(ParameterSession session) {
    this.session = session;
    this.executor = new ScheduledThreadPoolExecutor(1, task -> {
      Thread thread = new Thread(task, "seraphim timer");
      thread.setDaemon(true);
      return thread;
    });
  }

  void start(Duration lease) {
    long pause = Math.max(1, lease.toMillis() / RENEWALS);
    executor.scheduleWithFixedDelay(() -> ignoreFaults(session::renew), pause, pause, TimeUnit.MILLISECONDS);
    executor.scheduleWithFixedDelay(
        () -> ignoreFaults(session::checkSilence), CHECK_MILLIS, CHECK_MILLIS, TimeUnit.MILLISECONDS);
  }

  /** A fault does not end the timer: the next request that somebody waits for reports it. */
  private static void ignoreFaults(Runnable action) {
    try {
      action.run();
    } catch (SeraphimException e) {
      // The next renewal may succeed.
    }
  }

  void stop() {
    executor.shutdownNow();
  }
}
