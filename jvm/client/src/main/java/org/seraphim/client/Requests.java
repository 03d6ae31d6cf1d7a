package org.seraphim.client;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Makes the requests of a session, one method for each kind of frame. */
final class Requests {
  private static final int RANGE_FORM = 1;
  private static final int RANGE_BYTES = 32;
  private static final int RUN_BYTES = 8;

  private Requests() {}

  static Frame hello(Role role, int job, int lane, byte[] token) {
    ByteBuffer meta = buffer(8 + token.length).putShort((short) role.code).putShort((short) lane);
    Frame frame = new Frame(Kind.HELLO).withMeta(meta.putInt(token.length).put(token).array());
    frame.job = job;
    return frame;
  }

  static Frame openSession(String name, long leaseMs, int servers, String durability, String checkpoint) {
    Frame frame = new Frame(Kind.OPEN_SESSION);
    frame.json = new LinkedHashMap<>();
    frame.json.put("name", name);
    frame.json.put("lease_ms", leaseMs);
    frame.json.put("servers", servers);
    if (!durability.equals("checkpoint")) {
      frame.json.put("durability", durability);
    }
    if (!checkpoint.isEmpty()) {
      frame.json.put("checkpoint", checkpoint);
    }
    return frame;
  }

  static Frame checkpointSession(int job, String name) {
    Frame frame = of(Kind.CHECKPOINT_SESSION, job, 0);
    frame.json = new LinkedHashMap<>();
    frame.json.put("name", name);
    return frame;
  }

  static Frame createMatrix(int job, MatrixSpec spec) {
    Frame frame = of(Kind.CREATE_MATRIX, job, 0);
    frame.json = new LinkedHashMap<>();
    frame.json.put("spec", spec.json());
    return frame;
  }

  static Frame dropMatrix(int job, int matrix) {
    return of(Kind.DROP_MATRIX, job, matrix);
  }

  static Frame askMap(int job) {
    return of(Kind.ASK_MAP, job, 0);
  }

  static Frame renewSession(int job) {
    return of(Kind.RENEW_SESSION, job, 0);
  }

  static Frame closeSession(int job) {
    return of(Kind.CLOSE_SESSION, job, 0);
  }

  /** A pull of columns of a row. The ranges follow each other, and their partitions belong to one lane. */
  static Frame pull(int job, int matrix, int row, ColumnRange... ranges) {
    ByteBuffer meta = buffer(8 + RANGE_BYTES + ranges.length * RUN_BYTES).putLong(0);
    Frame frame = of(Kind.PULL, job, matrix);
    return frame.withMeta(putRanges(meta, row, ranges).array());
  }

  /** A plain push to a range of columns of a row. It has no push id: it is applied each time that it is sent. */
  static Frame push(int job, int matrix, int row, ColumnRange range, double[] values, int from) {
    ByteBuffer meta = putRanges(buffer(RANGE_BYTES + RUN_BYTES), row, range);
    return of(Kind.PUSH, job, matrix).withMeta(meta.array()).withDoubles(values, from, range.count());
  }

  /** A chunk of a staged push. */
  static Frame pushStaged(
      int job, int matrix, PushIdentity identity, int chunk, int row, ColumnRange range, double[] values, int from) {
    ByteBuffer meta = buffer(8 + RANGE_BYTES + RUN_BYTES).putLong(identity.attempt());
    Frame frame = identified(Kind.PUSH_STAGED, job, matrix, identity);
    frame.index = chunk;
    return frame.withMeta(putRanges(meta, row, range).array()).withDoubles(values, from, range.count());
  }

  static Frame commit(int job, int matrix, PushIdentity identity, int chunks) {
    Frame frame = identified(Kind.COMMIT, job, matrix, identity);
    frame.index = chunks;
    return frame.withMeta(buffer(8).putLong(identity.attempt()).array());
  }

  static Frame closeToken(int job, int matrix, long token) {
    Frame frame = of(Kind.CLOSE_TOKEN, job, matrix);
    frame.clock = token;
    return frame;
  }

  static Frame pullFunction(int job, int matrix, FunctionCall call) {
    ByteBuffer meta = buffer(8 + call.size()).putLong(0);
    call.write(meta);
    return of(Kind.PULL_FUNCTION, job, matrix).withMeta(meta.array());
  }

  static Frame pushFunction(int job, int matrix, List<FunctionCall> calls) {
    return of(Kind.PUSH_FUNCTION, job, matrix).withMeta(putCalls(buffer(8 + size(calls)), calls).array());
  }

  static Frame tryFunction(int job, int matrix, List<FunctionCall> calls) {
    return of(Kind.TRY_FUNCTION, job, matrix).withMeta(putCalls(buffer(8 + size(calls)), calls).array());
  }

  static Frame commitFunction(int job, int matrix, PushIdentity identity, List<FunctionCall> calls) {
    ByteBuffer meta = buffer(16 + size(calls)).putLong(identity.attempt());
    return identified(Kind.COMMIT_FUNCTION, job, matrix, identity).withMeta(putCalls(meta, calls).array());
  }

  /** Frames that travel as one, numbered from 1 on, so that each is answered. */
  static Frame batch(List<Frame> frames) {
    int size = frames.stream().mapToInt(one -> FrameCodec.size(one, one.meta.length)).sum();
    ByteBuffer meta = buffer(size);
    long number = 0;
    for (Frame one : frames) {
      FrameCodec.encode(one, ++number, one.meta, false, meta);
    }
    return new Frame(Kind.BATCH).withMeta(meta.array());
  }

  /** The meta of a JSON message: its number, its job if it has one, and the other fields. */
  static byte[] jsonMeta(long request, int job, Map<String, Object> fields) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("request", request);
    if (job != 0) {
      all.put("job", job);
    }
    all.putAll(fields);
    return Json.write(all);
  }

  private static Frame of(Kind kind, int job, int matrix) {
    Frame frame = new Frame(kind);
    frame.job = job;
    frame.matrix = matrix;
    return frame;
  }

  private static Frame identified(Kind kind, int job, int matrix, PushIdentity identity) {
    Frame frame = of(kind, job, matrix);
    frame.clock = identity.token();
    frame.task = identity.part();
    return frame;
  }

  /** The key list of a range: the table, the form, the number of runs, 0, start and end, the runs. */
  private static ByteBuffer putRanges(ByteBuffer out, int row, ColumnRange... ranges) {
    out.putInt(row).putInt(RANGE_FORM).putInt(ranges.length).putInt(0);
    out.putLong(ranges[0].start()).putLong(ranges[ranges.length - 1].end());
    for (ColumnRange range : ranges) {
      out.putInt(range.partition()).putInt(range.count());
    }
    return out;
  }

  private static int size(List<FunctionCall> calls) {
    return calls.stream().mapToInt(FunctionCall::size).sum();
  }

  private static ByteBuffer putCalls(ByteBuffer out, List<FunctionCall> calls) {
    out.putInt(calls.size()).putInt(0);
    calls.forEach(call -> call.write(out));
    return out;
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }
}
