package org.seraphim.client;

import java.util.List;

/** Reads the answers to a batch. */
final class Batches {
  private Batches() {}

  /** The answers in the order of the requests. The first that is a fault is thrown. */
  static List<Frame> answers(Frame batch, int expected, String place) {
    List<Frame> answers;
    try {
      answers = FrameCodec.decodeAll(Bytes.of(batch.meta));
    } catch (DamagedFrameException e) {
      throw new SeraphimException.BadAnswer(place + ": " + e.getMessage(), e);
    }
    for (Frame answer : answers) {
      if (answer.kind == Kind.FAULT) {
        throw RefusedException.read(place, answer);
      }
    }
    if (answers.size() != expected) {
      throw new SeraphimException.BadAnswer(
          place + ": a batch of " + expected + " requests has " + answers.size() + " answers", null);
    }
    return answers;
  }
}
