package org.seraphim.yarn;

/** A container and where it is. */
final class Placement {
  final String container;
  final String node;
  /** The address of the page with its logs. */
  final String logs;

  Placement(String container, String node, String logs) {
    this.container = container;
    this.node = node;
    this.logs = logs;
  }

  @Override
  public String toString() {
    return container + " on " + node;
  }
}
