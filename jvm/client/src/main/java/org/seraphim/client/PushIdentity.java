package org.seraphim.client;

import java.io.Serializable;

/**
 * What identifies a push that counts once. The driver chooses the token, one for each evaluation; the tokens of a
 * matrix increase. The part is a share of the data, the same in every attempt. The attempt is unique among those at
 * the part. Of all attempts at a part of a token, that which commits first counts.
 */
public final class PushIdentity implements Serializable {
  private static final long serialVersionUID = 1;

  private final long token;
  private final int part;
  private final long attempt;

  /** Identifies attempt {@code attempt} at part {@code part} of token {@code token}. */
  public PushIdentity(long token, int part, long attempt) {
    this.token = token;
    this.part = part;
    this.attempt = attempt;
  }

  /** The evaluation. */
  public long token() {
    return token;
  }

  /** The share of the data. */
  public int part() {
    return part;
  }

  /** One run of the computation of the part. */
  public long attempt() {
    return attempt;
  }

  @Override
  public String toString() {
    return "token " + token + ", part " + part + ", attempt " + attempt;
  }
}
