package org.seraphim.client;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A request that waits for its answer, and what is needed to send it again. */
final class PendingRequest {
  final Frame frame;
  final long number;
  /** Whether the request may be sent again when its connection was lost. */
  final boolean mayRepeat;
  /** Where the doubles of the answer go, or null: then the answer has its bytes. */
  final double[] out;
  final int outFrom;
  private final String place;
  private final CountDownLatch isDone = new CountDownLatch(1);
  /** Whether a byte of the request may have been sent. Guarded by the lock of the connection. */
  boolean isSent;
  private volatile Frame answer;
  private volatile SeraphimException fault;

  PendingRequest(String place, Frame frame, long number, boolean mayRepeat, double[] out, int outFrom) {
    this.place = place;
    this.frame = frame;
    this.number = number;
    this.mayRepeat = mayRepeat;
    this.out = out;
    this.outFrom = outFrom;
  }

  void complete(Frame value) {
    if (value.kind == Kind.FAULT) {
      fault = RefusedException.read(place, value);
    } else {
      answer = value;
    }
    isDone.countDown();
  }

  void fail(SeraphimException cause) {
    fault = cause;
    isDone.countDown();
  }

  boolean isDone() {
    return isDone.getCount() == 0;
  }

  /** What prevented the request, or null; it is known when {@link #isDone}. */
  SeraphimException fault() {
    return fault;
  }

  /** Waits for the answer. */
  Frame await(Deadline deadline) {
    try {
      if (!isDone.await(deadline.remainingNanos(), TimeUnit.NANOSECONDS)) {
        throw new SeraphimException.DeadlineExceeded(place + " has not answered " + frame.kind + " within "
            + deadline.limit() + ": it may be overloaded, stopped or cut off; a longer deadline is set with "
            + "ClientOptions.withDeadline", null);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new SeraphimException.Closed("the thread was interrupted while it waited for " + place, e);
    }
    if (fault != null) {
      throw fault.again();
    }
    return answer;
  }

  /** Waits for an answer of one kind. */
  Frame await(Deadline deadline, Kind kind) {
    Frame frame = await(deadline);
    if (frame.kind != kind) {
      throw new SeraphimException.BadAnswer(
          place + " answered " + this.frame.kind + " with " + frame.kind + ", expected " + kind, null);
    }
    return frame;
  }
}
