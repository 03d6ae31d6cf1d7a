package org.seraphim.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a session offers, with real servers. */
class ParameterServiceTest {
  private static final int COLUMNS = 200_003;
  private static TestServers servers;
  private ParameterSession session;
  private ServerMatrix matrix;

  @BeforeAll
  static void start() {
    servers = TestServers.start();
  }

  @AfterAll
  static void stop() {
    if (servers != null) {
      servers.close();
    }
  }

  @BeforeEach
  void open() {
    session = servers.session("test");
    matrix = session.createMatrix(new MatrixSpec("vectors", 6, COLUMNS, 3));
  }

  @AfterEach
  void close() {
    session.close();
  }

  private static double[] random(long seed) {
    return new Random(seed).doubles(COLUMNS).toArray();
  }

  @Test
  void what_was_pushed_is_pulled() {
    double[] values = random(1);
    matrix.push(2, 0, values, 0, COLUMNS);
    assertArrayEquals(values, matrix.pull(2));
    matrix.push(2, 7, new double[] {1, 2}, 0, 2);
    double[] part = new double[5];
    matrix.pull(2, 6, part, 1, 4);
    assertArrayEquals(new double[] {0, values[6], values[7] + 1, values[8] + 2, values[9]}, part);
    assertArrayEquals(new double[COLUMNS], matrix.pull(3));
  }

  @Test
  void a_range_outside_of_the_matrix_is_refused_before_anything_is_sent() {
    double[] values = new double[4];
    assertThrows(IllegalArgumentException.class, () -> matrix.pull(6, 0, values, 0, 4));
    assertThrows(IllegalArgumentException.class, () -> matrix.pull(0, COLUMNS - 3, values, 0, 4));
    assertThrows(IllegalArgumentException.class, () -> matrix.pull(0, 0, values, 1, 4));
  }

  @Test
  void functions_run_on_the_servers_in_the_order_in_which_they_are_sent() {
    double[] x = random(2);
    double[] y = random(3);
    matrix.push(0, 0, x, 0, COLUMNS);
    matrix.push(1, 0, y, 0, COLUMNS);
    Write axpy = matrix.pushRepeatableFunctions(
        FunctionCall.of("axpy", new int[] {0, 1}, new int[] {2}).with(2.5));
    double dot = matrix.pullFunction(FunctionCall.of("dot", new int[] {0, 2}, new int[0])).sum();
    assertTrue(axpy.isDone());
    double expected = 0;
    for (int i = 0; i < COLUMNS; i++) {
      expected += x[i] * (2.5 * x[i] + y[i]);
    }
    assertEquals(expected, dot, 1e-12 * expected);
  }

  @Test
  void several_functions_are_asked_in_one_wait() {
    matrix.push(0, 0, random(4), 0, COLUMNS);
    matrix.push(1, 0, random(5), 0, COLUMNS);
    long before = session.waits();
    List<PartialAnswers> answers = matrix.pullFunctions(List.of(
        FunctionCall.of("gram", new int[] {0, 1}, new int[0]),
        FunctionCall.of("dot", new int[] {0, 0}, new int[0]),
        FunctionCall.of("dot", new int[] {0, 1}, new int[0]),
        FunctionCall.of("count_non_zero", new int[] {1}, new int[0]),
        FunctionCall.of("max", new int[] {1}, new int[0]),
        FunctionCall.of("square_sum", new int[] {1}, new int[0])));
    assertEquals(before + 1, session.waits());
    assertArrayEquals(
        new double[] {answers.get(1).sum(), answers.get(2).sum(), answers.get(5).sum()}, answers.get(0).sums());
    assertEquals(COLUMNS, answers.get(3).count());
    assertEquals(java.util.Arrays.stream(random(5)).max().getAsDouble(), answers.get(4).largest());
  }

  @Test
  void a_sum_has_the_same_bits_for_any_number_of_partitions() {
    double[] x = random(6);
    double[] sums = new double[4];
    for (int i = 0; i < sums.length; i++) {
      ServerMatrix other = session.createMatrix(new MatrixSpec("cut-" + i, 1, COLUMNS, 1 + 3 * i));
      other.push(0, 0, x, 0, COLUMNS);
      sums[i] = other.pullFunction(FunctionCall.of("sum", new int[] {0}, new int[0])).sum();
      assertEquals(sums[0], sums[i]);
    }
  }

  @Test
  void a_function_that_fails_is_an_error_with_the_text_of_the_server() {
    matrix.push(0, 0, new double[] {-1}, 0, 1);
    FunctionCall log = FunctionCall.of("log", new int[] {0}, new int[] {1});
    RefusedException.FunctionFailed tried =
        assertThrows(RefusedException.FunctionFailed.class, () -> matrix.tryFunctions(log));
    assertTrue(tried.getMessage().contains("log"), tried.getMessage());
    Write write = matrix.pushRepeatableFunctions(log);
    assertThrows(RefusedException.FunctionFailed.class, () -> matrix.await(List.of(write)));
    assertThrows(RefusedException.FunctionFailed.class, write::throwIfFailed);
    FunctionCall unknown = FunctionCall.of("dott", new int[] {0, 1}, new int[0]);
    RefusedException.FunctionFailed refused =
        assertThrows(RefusedException.FunctionFailed.class, () -> matrix.pullFunction(unknown));
    assertTrue(refused.text().contains("dot"), refused.text());
  }

  @Test
  void of_two_attempts_at_a_part_one_counts() {
    double[] values = random(7);
    StagedPush slow = matrix.stage(new PushIdentity(1, 0, 7)).add(0, values);
    StagedPush fast = matrix.stage(new PushIdentity(1, 0, 8)).add(0, values);
    assertArrayEquals(new double[COLUMNS], matrix.pull(0));
    assertTrue(fast.commit());
    assertFalse(slow.commit());
    assertTrue(fast.commit());
    assertTrue(matrix.stage(new PushIdentity(1, 1, 9)).commit());
    matrix.await(List.of(matrix.closeToken(1)));
    assertArrayEquals(values, matrix.pull(0));
    StagedPush late = matrix.stage(new PushIdentity(1, 2, 10));
    assertThrows(RefusedException.TokenClosed.class, () -> late.add(0, values));
  }

  @Test
  void functions_that_are_committed_run_once() {
    FunctionCall add = FunctionCall.of("scalar_add", new int[] {0}, new int[] {0}).with(1.5);
    Write first = matrix.commitFunctions(new PushIdentity(1, 0, 1), add);
    Write second = matrix.commitFunctions(new PushIdentity(1, 0, 2), add);
    matrix.await(List.of(first, second));
    assertEquals(1.5, matrix.pull(0)[COLUMNS - 1]);
  }

  @Test
  void a_value_that_is_not_finite_is_refused() {
    double[] values = {1, Double.NaN};
    assertThrows(RefusedException.class, () -> matrix.push(0, 0, values, 0, 2));
    StagedPush staged = matrix.stage(new PushIdentity(3, 0, 0));
    assertThrows(RefusedException.class, () -> staged.add(0, 0, values, 0, 2));
  }

  @Test
  void a_dropped_matrix_and_an_ended_session_are_errors() {
    ServerMatrix other = session.createMatrix(new MatrixSpec("other", 1, 10, 1));
    session.drop(other);
    assertThrows(RefusedException.NotFound.class, () -> other.pull(0));
    IllegalArgumentException unknown = assertThrows(IllegalArgumentException.class, () -> session.matrix("other"));
    assertTrue(unknown.getMessage().contains("vectors"), unknown.getMessage());
    ParameterSession attached = ParameterSession.attach(session.handle());
    ServerMatrix same = attached.matrix("vectors");
    assertArrayEquals(new double[COLUMNS], same.pull(0));
    session.close();
    assertThrows(SeraphimException.Closed.class, () -> matrix.pull(0));
    assertThrows(RefusedException.SessionEnded.class, () -> same.pull(0));
    attached.close();
  }

  @Test
  void a_name_with_another_spec_is_refused() {
    assertThrows(RefusedException.class, () -> session.createMatrix(new MatrixSpec("vectors", 7, COLUMNS, 3)));
  }

  @Test
  void threads_share_the_connections() throws Exception {
    Thread[] threads = new Thread[8];
    Throwable[] faults = new Throwable[threads.length];
    for (int t = 0; t < threads.length; t++) {
      int number = t;
      threads[t] = new Thread(() -> {
        double[] values = random(number);
        for (int i = 0; i < 5; i++) {
          matrix.stage(new PushIdentity(1, number, i)).add(5, values).commit();
          matrix.pull(0);
        }
      });
      threads[t].setUncaughtExceptionHandler((thread, fault) -> faults[number] = fault);
      threads[t].start();
    }
    double expected = 0;
    for (int t = 0; t < threads.length; t++) {
      threads[t].join();
      assertEquals(null, faults[t]);
      expected += random(t)[0];
    }
    assertEquals(expected, matrix.pull(5)[0], 1e-12);
  }

  @Test
  void a_session_begins_with_the_checkpoint_of_another_one(@TempDir Path folder) {
    try (TestServers service = TestServers.start("--session-checkpoints", folder.toString());
        ParameterSession first = service.session("first")) {
      double[] values = random(5);
      ServerMatrix saved = first.createMatrix(new MatrixSpec("saved", 2, COLUMNS, 3));
      saved.push(1, 0, values, 0, COLUMNS);
      first.checkpoint("fit");
      saved.push(1, 0, values, 0, COLUMNS);
      ClientOptions options = ClientOptions.defaults().withCheckpoint("fit");
      try (ParameterSession second = ParameterSession.open(service.address(), new byte[0], "second", options)) {
        assertArrayEquals(values, second.matrix("saved").pull(1));
        assertArrayEquals(new double[COLUMNS], second.matrix("saved").pull(0));
      }
      RefusedException refused = assertThrows(RefusedException.class, () -> ParameterSession.open(
          service.address(), new byte[0], "third", options.withCheckpoint("none")));
      assertTrue(refused.getMessage().contains("there is no checkpoint \"none\""), refused.getMessage());
    }
    RefusedException refused = assertThrows(RefusedException.class, () -> session.checkpoint("fit"));
    assertTrue(refused.getMessage().contains("--session-checkpoints"), refused.getMessage());
  }
}
