package org.seraphim.client;

/** The kinds of frames, in the order of their codes on the wire: the first one has code 1. */
enum Kind {
  HELLO, WELCOME, OPEN_JOB, CLOSE_JOB, PULL, PULLED, PUSH, TICK, LEAVE, JOIN, JOINED, BARRIER, RELEASED, EXPORT,
  EXPORT_PAGE, IMPORT, KEEP_ROWS, RESTORE_ROWS, STATS, STATS_REPLY, DONE, FAULT, CONTROL, OPEN_SESSION, SESSION_MAP,
  CREATE_MATRIX, DROP_MATRIX, ASK_MAP, RENEW_SESSION, CLOSE_SESSION, ADD_MATRIX, PUSH_STAGED, COMMIT, COMMITTED,
  CLOSE_TOKEN, BATCH, PULL_FUNCTION, PULLED_FUNCTION, PUSH_FUNCTION, TRY_FUNCTION, COMMIT_FUNCTION, DROP_ROWS,
  SCAN_ROWS, CHECKPOINT_SESSION;

  private static final Kind[] ALL = values();

  int code() {
    return ordinal() + 1;
  }

  /** The kind of a code. */
  static Kind of(int code) throws DamagedFrameException {
    if (code < 1 || code > ALL.length) {
      throw new DamagedFrameException("a frame of the unknown kind " + code);
    }
    return ALL[code - 1];
  }
}
