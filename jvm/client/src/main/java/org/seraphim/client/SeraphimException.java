package org.seraphim.client;

/**
 * What prevented a request to the parameter service. The message says what is wrong, where, and what to do.
 *
 * <p>What the service refuses is a {@link RefusedException} with a subclass for each kind of fault. The other
 * subclasses here are faults of the way to the service.
 */
public abstract class SeraphimException extends RuntimeException {
  private static final long serialVersionUID = 1;

  SeraphimException(String message, Throwable cause) {
    super(message, cause);
  }

  /** The same fault, thrown by the thread that waits for it. Its cause has the stack of the thread that found it. */
  abstract SeraphimException again();

  /** Nothing accepts connections at an address, or a connection could not be made again in time. */
  public static final class Unreachable extends SeraphimException {
    Unreachable(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    SeraphimException again() {
      return new Unreachable(getMessage(), this);
    }
  }

  /** A connection was lost while a request was under way that must not be sent twice: it may have been applied. */
  public static final class ConnectionLost extends SeraphimException {
    ConnectionLost(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    SeraphimException again() {
      return new ConnectionLost(getMessage(), this);
    }
  }

  /** A request was not answered before its deadline. */
  public static final class DeadlineExceeded extends SeraphimException {
    DeadlineExceeded(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    SeraphimException again() {
      return new DeadlineExceeded(getMessage(), this);
    }
  }

  /** An answer that does not belong to its request, or bytes that are no frame. */
  public static final class BadAnswer extends SeraphimException {
    BadAnswer(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    SeraphimException again() {
      return new BadAnswer(getMessage(), this);
    }
  }

  /** The session, or the connection to a server, was closed by this program. */
  public static final class Closed extends SeraphimException {
    Closed(String message, Throwable cause) {
      super(message, cause);
    }

    @Override
    SeraphimException again() {
      return new Closed(getMessage(), this);
    }
  }
}
