package org.seraphim.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * One connection to the master or to a lane, which the threads of this process share: answers find their requests by
 * number. It is made when the first request is sent. When it is lost while requests are under way, it is made again,
 * and those that may be repeated are sent again in their order; the others fail.
 *
 * <p>A repeated read may see writes that were sent after it. Therefore a caller sends no write to rows whose read is
 * still under way.
 */
final class Connection implements AutoCloseable {
  /** Times that a connection is lost in a row, without an answer in between, until its requests fail. */
  private static final int MAX_LOSSES = 5;

  private final Endpoint endpoint;
  private final byte[] token;
  private final ClientOptions options;
  private final BufferPool buffers;
  /** Returns what else is known of the reason when the other end cannot be reached, or null. */
  private final Supplier<SeraphimException> reason;

  private final ConcurrentSkipListMap<Long, PendingRequest> pending = new ConcurrentSkipListMap<>();
  private final ReentrantLock lock = new ReentrantLock();
  /** Guarded by {@link #lock}. */
  private long lastNumber;
  /** Guarded by {@link #lock}: the channel that requests are written to, or null while there is none. */
  private SocketChannel channel;
  /** Guarded by {@link #lock}. */
  private Thread reader;
  /** Guarded by {@link #lock}: why nothing can be sent any more. */
  private SeraphimException end;
  /** The channel that is being read, so that another thread may cut it. */
  private volatile SocketChannel current;
  private volatile long lastBytes = System.nanoTime();
  /** Only the reading thread uses it. 0: there was no connection yet. */
  private long incarnation;
  private volatile int losses;

  Connection(
      Endpoint endpoint, byte[] token, ClientOptions options, BufferPool buffers, Supplier<SeraphimException> reason) {
    this.endpoint = endpoint;
    this.token = token;
    this.options = options;
    this.buffers = buffers;
    this.reason = reason;
  }

  /** Sends a request whose answer has no doubles, or whose doubles stay bytes. */
  PendingRequest send(Frame frame, boolean mayRepeat) {
    return send(frame, mayRepeat, null, 0);
  }

  /**
   * Sends a request. The doubles of its answer are written to {@code out} from {@code outFrom} on. Arrays of values
   * must not change until it is answered.
   */
  PendingRequest send(Frame frame, boolean mayRepeat, double[] out, int outFrom) {
    ByteBuffer bytes = buffers.take(RequestWriter.size(frame));
    try {
      RequestWriter.prepare(frame, bytes);
      return sendEncoded(frame, mayRepeat, out, outFrom, bytes);
    } finally {
      buffers.put(bytes);
    }
  }

  private PendingRequest sendEncoded(Frame frame, boolean mayRepeat, double[] out, int outFrom, ByteBuffer bytes) {
    lockWithin(Deadline.in(options.deadline()));
    try {
      if (end != null) {
        throw end.again();
      }
      PendingRequest request =
          new PendingRequest(endpoint.toString(), frame, ++lastNumber, mayRepeat, out, outFrom);
      if (pending.isEmpty()) {
        lastBytes = System.nanoTime();
      }
      pending.put(request.number, request);
      if (channel != null) {
        RequestWriter.write(channel, request, bytes);
      } else if (reader == null) {
        reader = Threads.daemon("seraphim reader of " + endpoint, this::run);
      }
      return request;
    } finally {
      lock.unlock();
    }
  }

  private void lockWithin(Deadline deadline) {
    try {
      if (!lock.tryLock(deadline.remainingNanos(), TimeUnit.NANOSECONDS)) {
        throw new SeraphimException.DeadlineExceeded(
            endpoint + " has not read earlier requests within " + deadline.limit(), null);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new SeraphimException.Closed("the thread was interrupted while it sent to " + endpoint, e);
    }
  }

  /** The thread that reads: connects, receives, and connects again while requests are under way. */
  private void run() {
    try {
      do {
        SocketChannel made = new Connector(endpoint, token, options, reason, this::isClosed).connect(
            incarnation == 0, this::setCurrent, this::checkIncarnation);
        Threads.daemon("seraphim sender to " + endpoint, () -> open(made));
        IOException loss = receive(made);
        losses++;
        Channels.close(made);
        forget(made, loss);
      } while (!endIfIdle());
    } catch (SeraphimException e) {
      fail(e);
    } catch (RuntimeException | Error e) {
      fail(new SeraphimException.BadAnswer("the connection to " + endpoint + " failed: " + e, e));
    }
  }

  private void setCurrent(SocketChannel made) {
    current = made;
    lastBytes = System.nanoTime();
  }

  private void checkIncarnation(long actual) {
    if (incarnation != 0 && incarnation != actual) {
      throw new SeraphimException.Unreachable(
          endpoint + " was restarted: the values of this session that it had are lost", null);
    }
    incarnation = actual;
  }

  /** Sends all requests that are under way, and lets others be sent. It does not run in the thread that reads. */
  private void open(SocketChannel made) {
    lock.lock();
    try {
      for (PendingRequest request : pending.values()) {
        ByteBuffer bytes = buffers.take(RequestWriter.size(request.frame));
        RequestWriter.write(made, request, bytes);
        buffers.put(bytes);
      }
      if (made.isOpen() && end == null) {
        channel = made;
      }
    } finally {
      lock.unlock();
    }
  }

  /** Receives answers until the connection is lost; returns why. */
  private IOException receive(SocketChannel from) {
    FrameReader frames = new FrameReader(from, () -> lastBytes = System.nanoTime());
    try {
      while (true) {
        Frame frame = frames.read(pending::get);
        PendingRequest request = pending.remove(frame.request);
        if (request != null) {
          losses = 0;
          request.complete(frame);
        } else if (frame.kind == Kind.FAULT) {
          return new IOException(RefusedException.read(endpoint.toString(), frame).getMessage());
        }
      }
    } catch (IOException e) {
      return e;
    }
  }

  /** Fails requests that may have been applied and must not be sent again. */
  private void forget(SocketChannel lost, IOException loss) {
    lock.lock();
    try {
      if (channel == lost) {
        channel = null;
      }
      for (PendingRequest request : new ArrayList<>(pending.values())) {
        boolean isHopeless = losses > MAX_LOSSES;
        if (isHopeless || request.isSent && !request.mayRepeat) {
          pending.remove(request.number);
          request.fail(lost(request, loss, isHopeless));
        }
      }
    } finally {
      lock.unlock();
    }
  }

  private SeraphimException lost(PendingRequest request, IOException loss, boolean isHopeless) {
    String why = isHopeless
        ? "it was lost " + losses + " times in a row"
        : "the request may have been applied, and must not be sent twice";
    return new SeraphimException.ConnectionLost("the connection to " + endpoint + " was lost during "
        + request.frame.kind + " (" + loss.getMessage() + "): " + why, loss);
  }

  /** Ends the thread that reads if no request is under way. The next request starts another one. */
  private boolean endIfIdle() {
    lock.lock();
    try {
      if (pending.isEmpty() || end != null) {
        reader = null;
        return true;
      }
      return false;
    } finally {
      lock.unlock();
    }
  }

  private boolean isClosed() {
    lock.lock();
    try {
      return end != null;
    } finally {
      lock.unlock();
    }
  }

  /** Fails all requests. Later requests try to connect anew. */
  private void fail(SeraphimException cause) {
    List<PendingRequest> failed;
    lock.lock();
    try {
      channel = null;
      reader = null;
      failed = new ArrayList<>(pending.values());
      pending.clear();
    } finally {
      lock.unlock();
    }
    failed.forEach(request -> request.fail(cause));
  }

  /** Cuts the connection if it was silent for too long while requests were under way. */
  void checkSilence() {
    long silence = System.nanoTime() - lastBytes;
    if (!pending.isEmpty() && silence > options.silenceLimit().toNanos()) {
      cut();
    }
  }

  @Override
  public void close() {
    SeraphimException closed = new SeraphimException.Closed(
        "the connection to " + endpoint + " is closed: the session was closed", null);
    // A thread that writes has the lock until its channel is closed.
    cut();
    lock.lock();
    try {
      end = closed;
    } finally {
      lock.unlock();
    }
    cut();
    fail(closed);
  }

  private void cut() {
    SocketChannel open = current;
    if (open != null) {
      Channels.close(open);
    }
  }
}
