package org.seraphim.yarn;

/** How a container ended. */
final class Exit {
  final int code;
  /** YARN has taken the container away: preemption, a lost node. The program is not to blame. */
  final boolean isLoss;
  private final String text;

  Exit(int code, boolean isLoss, String text) {
    this.code = code;
    this.isLoss = isLoss;
    this.text = text;
  }

  @Override
  public String toString() {
    return (isLoss ? "was taken away by YARN with code " : "ended with exit code ") + code
        + (text.isEmpty() ? "" : " (" + text + ")");
  }
}
