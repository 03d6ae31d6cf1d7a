package org.seraphim.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

/** The bytes of frames are those of {@code crates/rpc/vectors}, which the Rust tests write. */
class GoldenFramesTest {
  private static final Map<String, byte[]> GOLDEN = Repository.frames();
  private static final PushIdentity IDENTITY = new PushIdentity(51, 52, 53);
  private static final FunctionCall AXPY =
      FunctionCall.of("axpy", new int[] {4, 2}, new int[] {2}).withVersion(2).with(0.5);

  @Test
  void every_golden_frame_is_read_and_written_back_to_the_same_bytes() throws Exception {
    for (Map.Entry<String, byte[]> golden : GOLDEN.entrySet()) {
      List<Frame> frames = FrameCodec.decodeAll(Bytes.of(golden.getValue()));
      assertEquals(1, frames.size(), golden.getKey());
      boolean hasCrc = (golden.getValue()[8] & 1) != 0;
      assertArrayEquals(
          golden.getValue(), FrameCodec.bytes(frames.get(0), frames.get(0).request, hasCrc), golden.getKey());
    }
  }

  @Test
  void a_connection_reads_every_golden_frame() throws Exception {
    for (Map.Entry<String, byte[]> golden : GOLDEN.entrySet()) {
      Frame expected = FrameCodec.decodeAll(Bytes.of(golden.getValue())).get(0);
      Frame actual = read(golden.getValue());
      assertArrayEquals(FrameCodec.bytes(expected, 9, true), FrameCodec.bytes(actual, 9, true), golden.getKey());
    }
  }

  @Test
  void a_connection_refuses_every_damaged_byte_that_a_checksum_covers() {
    byte[] golden = GOLDEN.get("pulled_f64");
    for (int i = 0; i < golden.length; i++) {
      byte[] damaged = golden.clone();
      damaged[i] ^= 0x10;
      assertThrows(java.io.IOException.class, () -> read(damaged), "byte " + i);
    }
  }

  @Test
  void every_request_of_a_session_has_the_golden_bytes() {
    Map<String, Frame> requests = new LinkedHashMap<>();
    requests.put("hello_tool", Requests.hello(Role.TOOL, 0, 0, new byte[0]));
    requests.put("hello_session", Requests.hello(Role.SESSION, 2, 1, new byte[0]));
    requests.put("open_session", Requests.openSession("fit", 60000, 2, "checkpoint", ""));
    requests.put("checkpoint_session", Requests.checkpointSession(2, "model-1"));
    requests.put("open_session_with_replicas", Requests.openSession("fit", 60000, 2, "replica", ""));
    requests.put("open_session_from_a_checkpoint", Requests.openSession("fit", 60000, 2, "checkpoint", "model-1"));
    requests.put("drop_matrix", Requests.dropMatrix(2, 1));
    requests.put("ask_map", Requests.askMap(2));
    requests.put("renew_session", Requests.renewSession(2));
    requests.put("close_session", Requests.closeSession(2));
    requests.put("commit", Requests.commit(2, 1, IDENTITY, 2));
    requests.put("close_token", Requests.closeToken(2, 1, 51));
    requests.put("commit_function", Requests.commitFunction(2, 1, new PushIdentity(50, 51, 54), List.of(AXPY)));
    requests.forEach(GoldenFramesTest::check);
  }

  @Test
  void requests_that_tasks_send_too_have_the_golden_bytes_apart_from_task_clock_and_time_to_wait() {
    FunctionCall dot = FunctionCall.of("dot", new int[] {4, 2}, new int[0]);
    FunctionCall dotInto = FunctionCall.of("dot", new int[] {4, 2}, new int[] {4});
    checkOfTask("pull_function", Requests.pullFunction(2, 1, dot), 0);
    checkOfTask("try_function", Requests.tryFunction(2, 1, List.of(AXPY)), 4);
    checkOfTask("push_function", Requests.pushFunction(2, 1, List.of(AXPY, dotInto)), 4);
    Frame pull = Requests.pull(2, 1, 6, new ColumnRange(3, 100, 102), new ColumnRange(5, 102, 103));
    checkOfTask("pull_range", pull, 0);
  }

  @Test
  void a_matrix_is_created_with_the_golden_bytes() throws Exception {
    Frame golden = golden("create_matrix");
    Frame request = new Frame(Kind.CREATE_MATRIX);
    request.job = golden.job;
    request.json = new LinkedHashMap<>();
    request.json.put("spec", ((Map<?, ?>) Json.parse(golden.meta)).get("spec"));
    check("create_matrix", request);
  }

  @Test
  void answers_are_read_from_the_golden_bytes() throws Exception {
    SeraphimException fault = RefusedException.read("the server", golden("fault"));
    assertEquals("the server refused the request (busy): come again", fault.getMessage());
    assertEquals(RefusedException.Busy.class, fault.getClass());
    assertEquals(53, Bytes.longAt(golden("committed").meta, 0));
    PartialAnswers answers = new PartialAnswers();
    answers.add(golden("pulled_function"));
    assertArrayEquals(new byte[][] {{1, 2, 3}, {}}, answers.bytes().toArray());
    double[] out = new double[3];
    PendingRequest asked = new PendingRequest("", new Frame(Kind.PULL), 21, true, out, 1);
    new FrameReader(channel(GOLDEN.get("pulled_f64")), () -> {}).read(number -> number == 21 ? asked : null);
    assertArrayEquals(new double[] {0, 0.1, 0}, out);
  }

  @Test
  void a_batch_has_the_golden_bytes() throws Exception {
    Frame golden = golden("batch");
    List<Frame> frames = FrameCodec.decodeAll(Bytes.of(golden.meta));
    assertEquals(List.of(Kind.PUSH_STAGED, Kind.COMMIT), List.of(frames.get(0).kind, frames.get(1).kind));
    Frame again = Requests.batch(frames);
    assertEquals(golden.meta.length, again.meta.length);
    Frame none = Requests.batch(List.of());
    check("batch_of_nothing", none);
  }

  @Test
  void checksums_are_those_of_the_golden_words() {
    int checked = 0;
    for (String line : Repository.lines("crates/rpc/vectors/hashes.txt")) {
      if (line.startsWith("crc32c ")) {
        String[] words = line.split("\"");
        CRC32C crc = new CRC32C();
        crc.update(words[1].getBytes(java.nio.charset.StandardCharsets.UTF_8));
        assertEquals(Long.parseLong(words[2].trim(), 16), crc.getValue(), line);
        checked++;
      }
    }
    assertEquals(3, checked);
  }

  /** Compares with the frame of a task: a session has neither clock, task, index nor a time to wait in the meta. */
  private static void checkOfTask(String name, Frame request, int waitAt) {
    Frame golden = golden(name);
    golden.clock = 0;
    golden.task = 0;
    golden.index = 0;
    Arrays.fill(golden.meta, waitAt, waitAt + 4, (byte) 0);
    assertArrayEquals(
        FrameCodec.bytes(golden, golden.request, true), FrameCodec.bytes(request, golden.request, true), name);
  }

  private static Frame golden(String name) {
    try {
      return FrameCodec.decodeAll(Bytes.of(GOLDEN.get(name))).get(0);
    } catch (DamagedFrameException e) {
      throw new AssertionError(e);
    }
  }

  private static void check(String name, Frame request) {
    Frame golden = golden(name);
    assertArrayEquals(GOLDEN.get(name), FrameCodec.bytes(request, golden.request, true), name);
  }

  private static Frame read(byte[] bytes) throws java.io.IOException {
    return new FrameReader(channel(bytes), () -> {}).read(number -> null);
  }

  private static java.nio.channels.ReadableByteChannel channel(byte[] bytes) {
    return Channels.newChannel(new ByteArrayInputStream(bytes));
  }
}
