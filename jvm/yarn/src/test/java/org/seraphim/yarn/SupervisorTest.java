package org.seraphim.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SupervisorTest {
  private static final Exit KILLED = new Exit(137, false, "killed");
  private static final Exit PREEMPTED = new Exit(-102, true, "");
  private static final Result SUCCESS = new Result(Result.Status.SUCCEEDED, "done");
  private static final long MASTER = id(0, 0);
  private static final long SERVER_1 = id(1, 1);
  private static final long WORKER = id(2, 0);

  private final Settings settings = new Settings(TestSettings.properties());
  private Supervisor supervisor;
  private long now;

  @BeforeEach
  void begin() {
    supervisor = new Supervisor(settings, 1);
  }

  /** The actions without log lines, separated by commas. */
  private static String text(List<Action> actions) {
    return actions.stream().map(Action::toString).filter(action -> !action.startsWith("log "))
        .collect(Collectors.joining(", "));
  }

  private static void assertActions(String expected, List<Action> actions) {
    assertEquals(expected, text(actions));
  }

  private static long id(int role, int rank) {
    return new Task(new Settings(TestSettings.properties()).roles.get(role), rank).requestId();
  }

  private static Placement in(String container) {
    return new Placement(container, "node:1", "http://node/" + container);
  }

  private void startAll() {
    supervisor.begin(now, null);
    supervisor.allocated(MASTER, in("m"));
    supervisor.allocated(id(1, 0), in("s0"));
    supervisor.allocated(SERVER_1, in("s1"));
    supervisor.allocated(WORKER, in("w"));
  }

  @Test
  void all_ranks_of_all_roles_are_asked_for_at_once() {
    assertActions("request master 0, request server 0, request server 1, request worker 0", supervisor.begin(now, null));
    assertActions("withdraw server 1, start server 1 incarnation 1 in c", supervisor.allocated(SERVER_1, in("c")));
  }

  @Test
  void progress_is_half_when_all_ranks_run() {
    supervisor.begin(now, null);
    assertEquals(0, supervisor.progress());
    startAll();
    assertEquals(0.5f, supervisor.progress());
  }

  @Test
  void a_container_that_ends_is_asked_for_again_under_its_rank() {
    startAll();
    for (int code : new int[] {137, 0}) {
      Exit exit = new Exit(code, false, "");
      supervisor = new Supervisor(settings, 1);
      startAll();
      assertActions("request server 1", supervisor.ended(now, "s1", exit));
      assertActions("withdraw server 1, start server 1 incarnation 2 in c", supervisor.allocated(SERVER_1, in("c")));
    }
  }

  @Test
  void repeated_failures_are_delayed_more_and_more() {
    supervisor = new Supervisor(TestSettings.with("max_failures", "10"), 1);
    startAll();
    String container = "w";
    for (long delay : new long[] {0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000}) {
      String requested = text(supervisor.ended(now, container, KILLED));
      if (delay > 0) {
        assertEquals("", requested);
        assertActions("", supervisor.tick(now + delay - 1));
        requested = text(supervisor.tick(now + delay));
      }
      assertEquals("request worker 0", requested);
      now += delay;
      container += "x";
      supervisor.allocated(WORKER, in(container));
    }
  }

  @Test
  void too_many_failures_of_a_rank_end_the_application() {
    startAll();
    String container = "w";
    for (int failure = 0; failure < 3; failure++) {
      supervisor.ended(now, container, KILLED);
      supervisor.tick(now += 5_000);
      supervisor.allocated(WORKER, in(container += "x"));
    }
    assertActions("stop m, stop s0, stop s1", supervisor.ended(now, "wxxx", KILLED));
    supervisor.ended(now, "m", PREEMPTED);
    supervisor.ended(now, "s0", PREEMPTED);
    String end = text(supervisor.ended(now, "s1", PREEMPTED));
    assertTrue(end.startsWith("end FAILED: worker 0 has ended by itself 4 times within 100 s"), end);
    for (String part : new String[] {"limit is 3", "wxxx on node:1", "exit code 137", "killed", "http://node/wxxx"}) {
      assertTrue(end.contains(part), end);
    }
  }

  @Test
  void failures_older_than_the_window_are_forgotten() {
    startAll();
    String container = "w";
    for (int failure = 0; failure < 20; failure++) {
      assertActions("request worker 0", supervisor.ended(now, container, KILLED));
      supervisor.allocated(WORKER, in(container += "x"));
      now += 100_000;
    }
  }

  @Test
  void failures_of_different_ranks_are_counted_apart() {
    startAll();
    assertActions("request server 0", supervisor.ended(now, "s0", KILLED));
    assertActions("request server 1", supervisor.ended(now, "s1", KILLED));
    assertActions("request worker 0", supervisor.ended(now, "w", KILLED));
  }

  @Test
  void preemption_does_not_count_and_does_not_delay() {
    startAll();
    String container = "w";
    for (int loss = 0; loss < 20; loss++) {
      assertActions("request worker 0", supervisor.ended(now, container, PREEMPTED));
      supervisor.allocated(WORKER, in(container += "x"));
    }
  }

  @Test
  void containers_that_nobody_needs_are_released() {
    startAll();
    assertActions("release c", supervisor.allocated(WORKER, in("c")));
    assertActions("release d", supervisor.allocated(id(2, 0) + 7, in("d")));
    assertActions("release e", supervisor.allocated(0, in("e")));
    assertActions("", supervisor.ended(now, "c", PREEMPTED));
  }

  @Test
  void a_container_that_cannot_be_started_is_given_back_and_counts() {
    startAll();
    assertActions("release w, request worker 0", supervisor.startFailed(now, "w", KILLED));
    assertActions("", supervisor.ended(now, "w", PREEMPTED));
  }

  @Test
  void a_later_attempt_keeps_what_runs_and_asks_for_the_rest() {
    supervisor = new Supervisor(settings, 2);
    supervisor.recovered(MASTER, in("m"));
    supervisor.recovered(id(1, 0), in("s0"));
    supervisor.recovered(WORKER, in("w"));
    assertActions("request server 1", supervisor.begin(now, null));
    // The end of a container that an earlier attempt had, and its replacement.
    assertActions("", supervisor.ended(now, "s1", KILLED));
    assertActions("withdraw server 1, start server 1 incarnation 1000001 in c", supervisor.allocated(SERVER_1, in("c")));
    // A kept container is replaced like any other.
    assertActions("request worker 0", supervisor.ended(now, "w", KILLED));
    assertActions("withdraw worker 0, start worker 0 incarnation 1000001 in d", supervisor.allocated(WORKER, in("d")));
  }

  @Test
  void a_container_that_is_found_late_is_kept_only_if_its_rank_has_none() {
    supervisor.begin(now, null);
    assertActions("withdraw worker 0", supervisor.recovered(WORKER, in("w")));
    assertActions("release x", supervisor.recovered(WORKER, in("x")));
    assertActions("", supervisor.recovered(WORKER, in("w")));
    assertActions("release y", supervisor.allocated(WORKER, in("y")));
    assertActions("release z", supervisor.recovered(id(2, 0) + 7, in("z")));
  }

  @Test
  void the_end_of_the_deciding_role_with_a_result_ends_the_application() {
    startAll();
    assertActions("read the result", supervisor.ended(now, "m", new Exit(0, false, "")));
    assertActions("stop s0, stop s1, stop w", supervisor.result(now, SUCCESS));
    // Nothing is started any more, and the order of the ends does not matter.
    assertActions("", supervisor.ended(now, "w", KILLED));
    assertActions("", supervisor.ended(now, "s1", PREEMPTED));
    assertActions("", supervisor.tick(now));
    assertActions("end SUCCEEDED: done", supervisor.ended(now, "s0", PREEMPTED));
    assertActions("", supervisor.tick(now + Supervisor.STOP_LIMIT_MS));
  }

  @Test
  void a_container_that_does_not_stop_does_not_hold_up_the_end() {
    startAll();
    supervisor.ended(now, "m", KILLED);
    supervisor.result(now, SUCCESS);
    assertActions("", supervisor.tick(now + Supervisor.STOP_LIMIT_MS - 1));
    assertActions("end SUCCEEDED: done", supervisor.tick(now + Supervisor.STOP_LIMIT_MS));
  }

  @Test
  void requests_are_withdrawn_at_the_end_and_late_containers_released() {
    supervisor.begin(now, null);
    supervisor.allocated(MASTER, in("m"));
    supervisor.ended(now, "m", KILLED);
    assertActions("withdraw server 0, withdraw server 1, withdraw worker 0, end SUCCEEDED: done",
        supervisor.result(now, SUCCESS));
    assertActions("release c", supervisor.allocated(WORKER, in("c")));
    assertActions("release d", supervisor.recovered(WORKER, in("d")));
  }

  @Test
  void the_deciding_role_without_a_result_is_started_again() {
    startAll();
    assertActions("read the result", supervisor.ended(now, "m", KILLED));
    assertActions("", supervisor.tick(now));
    assertActions("request master 0", supervisor.result(now, null));
    assertActions("withdraw master 0, start master 0 incarnation 2 in c", supervisor.allocated(MASTER, in("c")));
  }

  @Test
  void a_result_without_a_deciding_container_ends_a_later_attempt_at_once() {
    supervisor = new Supervisor(settings, 2);
    supervisor.recovered(WORKER, in("w"));
    assertActions("stop w", supervisor.begin(now, SUCCESS));
    assertActions("end SUCCEEDED: done", supervisor.ended(now, "w", PREEMPTED));
  }

  @Test
  void a_result_waits_for_the_end_of_a_deciding_container_that_still_runs() {
    supervisor = new Supervisor(settings, 2);
    List<Long> kept = Arrays.asList(MASTER, id(1, 0), SERVER_1, WORKER);
    kept.forEach(id -> supervisor.recovered(id, in("c" + id)));
    assertActions("", supervisor.begin(now, SUCCESS));
    assertActions("read the result", supervisor.ended(now, "c" + MASTER, KILLED));
  }

  @Test
  void a_request_that_can_never_be_fulfilled_ends_the_application() {
    supervisor.begin(now, null);
    assertActions("withdraw master 0, withdraw server 0, withdraw server 1, withdraw worker 0, end FAILED: too large",
        supervisor.refused(now, "too large"));
    assertEquals(Collections.emptyList(), supervisor.refused(now, "too large"));
  }
}
