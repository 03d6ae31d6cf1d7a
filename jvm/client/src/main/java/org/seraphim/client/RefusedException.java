package org.seraphim.client;

import java.util.Map;

/** The master or a server refused a request. The message has the text of the service. */
public abstract class RefusedException extends SeraphimException {
  private static final long serialVersionUID = 1;

  private final String place;
  private final String kind;
  private final String text;

  RefusedException(String place, String kind, String text, Throwable cause) {
    super(place + " refused the request (" + kind + "): " + text, cause);
    this.place = place;
    this.kind = kind;
    this.text = text;
  }

  /** Who refused the request. */
  public String place() {
    return place;
  }

  /** The kind of the fault, as in {@code docs/protocol.md}. */
  public String kind() {
    return kind;
  }

  /** The text of the service. */
  public String text() {
    return text;
  }

  @Override
  SeraphimException again() {
    return of(place, kind, text, this);
  }

  /** Reads a frame of kind {@code Fault}. */
  static SeraphimException read(String place, Frame frame) {
    try {
      Map<?, ?> fields = (Map<?, ?>) Json.parse(frame.meta);
      return of(place, (String) fields.get("kind"), String.valueOf(fields.get("text")), null);
    } catch (DamagedFrameException | ClassCastException e) {
      return new BadAnswer(place + " sent a fault that cannot be read: " + e.getMessage(), e);
    }
  }

  private static SeraphimException of(String place, String kind, String text, Throwable cause) {
    switch (String.valueOf(kind)) {
      case "bad_token": return new BadToken(place, kind, text, cause);
      case "bad_version": return new BadVersion(place, kind, text, cause);
      case "bad_frame": return new BadFrame(place, kind, text, cause);
      case "too_large": return new TooLarge(place, kind, text, cause);
      case "busy": return new Busy(place, kind, text, cause);
      case "no_such_job": return new NoSuchSession(place, kind, text, cause);
      case "not_found": return new NotFound(place, kind, text, cause);
      case "non_finite": return new NonFinite(place, kind, text, cause);
      case "invalid": return new Invalid(place, kind, text, cause);
      case "stopped": return new SessionEnded(place, kind, text, cause);
      case "token_closed": return new TokenClosed(place, kind, text, cause);
      case "function": return new FunctionFailed(place, kind, text, cause);
      default: return new OtherRefusal(place, kind, text, cause);
    }
  }

  /** The shared secret is wrong. */
  public static final class BadToken extends RefusedException {
    BadToken(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The service speaks another version of the protocol. */
  public static final class BadVersion extends RefusedException {
    BadVersion(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The service could not read a frame, and closed the connection. */
  public static final class BadFrame extends RefusedException {
    BadFrame(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** More than a limit of the service allows, such as its memory. */
  public static final class TooLarge extends RefusedException {
    TooLarge(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** Too many sessions or requests, or no server is available. A later attempt may succeed. */
  public static final class Busy extends RefusedException {
    Busy(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The session never existed. */
  public static final class NoSuchSession extends RefusedException {
    NoSuchSession(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The matrix, partition or lane does not exist. */
  public static final class NotFound extends RefusedException {
    NotFound(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** A value that is not finite. */
  public static final class NonFinite extends RefusedException {
    NonFinite(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** A request that can never be granted in this form. */
  public static final class Invalid extends RefusedException {
    Invalid(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The session has ended, for example because a server was lost. The text has the reason. */
  public static final class SessionEnded extends RefusedException {
    SessionEnded(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** The token of a staged push is closed: the driver has moved on, so that this attempt does not count. */
  public static final class TokenClosed extends RefusedException {
    TokenClosed(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** A PS function was refused or has failed. */
  public static final class FunctionFailed extends RefusedException {
    FunctionFailed(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }

  /** A fault of another kind, such as an internal one. */
  public static final class OtherRefusal extends RefusedException {
    OtherRefusal(String place, String kind, String text, Throwable cause) {
      super(place, kind, text, cause);
    }
  }
}
