package org.seraphim.client;

import java.util.List;

/** A change that was sent to all lanes of a matrix, and need not have been answered yet. */
public final class Write {
  private final List<PendingRequest> requests;

  Write(List<PendingRequest> requests) {
    this.requests = requests;
  }

  /** Whether all lanes have answered. */
  public boolean isDone() {
    return requests.stream().allMatch(PendingRequest::isDone);
  }

  /** Throws what prevented the change, as far as it is known: always if {@link #isDone}. */
  public void throwIfFailed() {
    for (PendingRequest request : requests) {
      SeraphimException fault = request.isDone() ? request.fault() : null;
      if (fault != null) {
        throw fault.again();
      }
    }
  }

  List<PendingRequest> requests() {
    return requests;
  }
}
