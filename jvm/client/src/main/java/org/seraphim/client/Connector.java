package org.seraphim.client;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.Supplier;

/** Makes a connection: connects, sends {@code Hello}, and reads {@code Welcome}. */
final class Connector {
  /** The longest time of one attempt to connect. */
  private static final Duration ATTEMPT = Duration.ofSeconds(5);
  private static final long FIRST_PAUSE_NANOS = 10_000_000;
  private static final long LAST_PAUSE_NANOS = 500_000_000;

  private final Endpoint endpoint;
  private final byte[] token;
  private final ClientOptions options;
  private final Supplier<SeraphimException> reason;
  private final BooleanSupplier isClosed;

  Connector(
      Endpoint endpoint, byte[] token, ClientOptions options, Supplier<SeraphimException> reason,
      BooleanSupplier isClosed) {
    this.endpoint = endpoint;
    this.token = token;
    this.options = options;
    this.reason = reason;
    this.isClosed = isClosed;
  }

  /**
   * Connects, and tries again until the limit of the options, except where nothing listens at the first attempt.
   * {@code onChannel} gets each channel before it is used, {@code onIncarnation} the incarnation of the process at the
   * other end.
   */
  SocketChannel connect(boolean isFirst, Consumer<SocketChannel> onChannel, LongConsumer onIncarnation) {
    Deadline deadline = Deadline.in(options.reconnectLimit());
    for (long pause = FIRST_PAUSE_NANOS;; pause = Math.min(2 * pause, LAST_PAUSE_NANOS)) {
      try {
        return tryEither(isFirst, onChannel, onIncarnation);
      } catch (RefusedException.Busy e) {
        if (deadline.isOver()) {
          throw e;
        }
      } catch (IOException e) {
        SeraphimException known = reason.get();
        if (known != null) {
          throw known;
        }
        boolean isHopeless = e instanceof DamagedFrameException || e instanceof UnknownHostException
            || isFirst && e instanceof ConnectException;
        if (isHopeless || deadline.isOver()) {
          throw new SeraphimException.Unreachable(text(isFirst, e), e);
        }
      }
      if (isClosed.getAsBoolean()) {
        throw new SeraphimException.Closed("the connection to " + endpoint + " is closed", null);
      }
      LockSupport.parkNanos(pause);
    }
  }

  private String text(boolean isFirst, IOException e) {
    String what = isFirst
        ? " cannot be reached: "
        : " was lost and cannot be reached again within " + options.reconnectLimit() + ": ";
    return endpoint + what + describe(e) + "; check that it runs and that the address is that of its --listen";
  }

  private static String describe(IOException e) {
    return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
  }

  /**
   * Tries the lane, and its standby if it has one. The standby refuses until it has taken over, so after a loss it is
   * tried first: a server that stands still answers nothing.
   */
  private SocketChannel tryEither(boolean isFirst, Consumer<SocketChannel> onChannel, LongConsumer onIncarnation)
      throws IOException {
    if (endpoint.standby == null) {
      return tryOnce(endpoint, onChannel, onIncarnation);
    }
    Endpoint first = isFirst ? endpoint : endpoint.standby;
    try {
      return tryOnce(first, onChannel, onIncarnation);
    } catch (IOException | RefusedException e) {
      try {
        return tryOnce(isFirst ? endpoint.standby : endpoint, onChannel, onIncarnation);
      } catch (IOException | RefusedException other) {
        if (e instanceof RefusedException.Busy) {
          e.addSuppressed(other);
          throw e;
        }
        other.addSuppressed(e);
        throw other;
      }
    }
  }

  private SocketChannel tryOnce(Endpoint to, Consumer<SocketChannel> onChannel, LongConsumer onIncarnation)
      throws IOException {
    InetSocketAddress address = to.socketAddress();
    if (address.isUnresolved()) {
      throw new UnknownHostException("the name " + address.getHostString() + " has no address");
    }
    SocketChannel channel = SocketChannel.open();
    try {
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
      onChannel.accept(channel);
      channel.socket().connect(address, (int) ATTEMPT.toMillis());
      channel.write(ByteBuffer.wrap(FrameCodec.bytes(
          Requests.hello(to.role, to.job, to.lane, token), 1, true)));
      Frame answer = new FrameReader(channel, () -> {}).read(number -> null);
      if (answer.kind == Kind.FAULT) {
        throw RefusedException.read(to.toString(), answer);
      }
      if (answer.kind != Kind.WELCOME || answer.meta.length < Long.BYTES) {
        throw new DamagedFrameException("the answer to Hello is " + answer.kind);
      }
      onIncarnation.accept(Bytes.longAt(answer.meta, 0));
      return channel;
    } catch (IOException | RuntimeException e) {
      Channels.close(channel);
      throw e;
    }
  }
}
