package org.seraphim.client;

/** Starts threads that do not keep the process alive. */
final class Threads {
  private Threads() {}

  static Thread daemon(String name, Runnable action) {
    Thread thread = new Thread(action, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
