package org.seraphim.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Bad input and bad days: what goes wrong ends in one clear error, or in the right result. */
@Timeout(60)
class FaultsTest {
  private static final int COLUMNS = 300_000;
  private static final MatrixSpec SPEC = new MatrixSpec("w", 2, COLUMNS, 2);
  private static final ClientOptions FAST = ClientOptions.defaults()
      .withReconnectLimit(Duration.ofSeconds(10)).withSilenceLimit(Duration.ofMillis(500));

  @Test
  void servers_that_cannot_be_reached_are_an_error_that_names_the_address() throws Exception {
    int port;
    try (ServerSocket closed = new ServerSocket(0)) {
      port = closed.getLocalPort();
    }
    String address = "127.0.0.1:" + port;
    SeraphimException.Unreachable fault = assertThrows(
        SeraphimException.Unreachable.class, () -> ParameterSession.open(address, new byte[0], "test"));
    assertTrue(fault.getMessage().contains(address) && fault.getMessage().contains("check that"), fault.getMessage());
    assertThrows(SeraphimException.Unreachable.class,
        () -> ParameterSession.open("no-such-host.invalid:7070", new byte[0], "test"));
    assertThrows(IllegalArgumentException.class, () -> ParameterSession.open("host", new byte[0], "test"));
  }

  @Test
  void a_service_that_is_none_is_recognized() throws Exception {
    try (ServerSocket other = new ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress())) {
      Threads.daemon("other service", () -> {
        try (java.net.Socket client = other.accept()) {
          client.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n".repeat(5).getBytes());
        } catch (java.io.IOException e) {
          throw new java.io.UncheckedIOException(e);
        }
      });
      SeraphimException.Unreachable fault = assertThrows(SeraphimException.Unreachable.class,
          () -> ParameterSession.open("127.0.0.1:" + other.getLocalPort(), new byte[0], "test"));
      assertTrue(fault.getMessage().contains("no parameter service"), fault.getMessage());
    }
  }

  @Test
  void a_wrong_secret_is_refused(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("secret");
    Files.writeString(file, "open sesame");
    try (TestServers servers = TestServers.start("--token-file", file.toString())) {
      assertThrows(RefusedException.BadToken.class, () -> servers.session("test"));
      ParameterSession session = ParameterSession.open(servers.address(), "open sesame".getBytes(), "test");
      ServerMatrix matrix = session.createMatrix(new MatrixSpec("w", 1, 10, 1));
      assertEquals(10, matrix.pull(0).length);
      assertTrue(!session.handle().toString().contains("sesame"));
      session.close();
    }
  }

  @Test
  void a_matrix_beyond_the_memory_of_the_servers_is_refused_with_the_amounts() {
    try (TestServers servers = TestServers.start("--memory-limit", "64M");
        ParameterSession session = servers.session("test")) {
      RefusedException.TooLarge fault = assertThrows(RefusedException.TooLarge.class,
          () -> session.createMatrix(new MatrixSpec("too-large", 100, 1_000_000, 2)));
      assertTrue(fault.text().contains("bytes") && fault.text().contains("limit"), fault.text());
      // The session goes on.
      assertEquals(10, session.createMatrix(new MatrixSpec("small", 1, 10, 1)).pull(0).length);
    }
  }

  @Test
  void when_a_server_is_killed_every_request_ends_with_the_reason() {
    try (TestServers servers = TestServers.start()) {
      ParameterSession session = ParameterSession.open(servers.address(), new byte[0], "test", FAST);
      ServerMatrix matrix = session.createMatrix(new MatrixSpec("w", 2, COLUMNS, 2));
      matrix.pull(0);
      servers.killOneServer();
      SeraphimException fault = assertThrows(SeraphimException.class, () -> {
        while (true) {
          matrix.stage(new PushIdentity(1, 0, 0)).add(0, new double[COLUMNS]);
        }
      });
      assertTrue(fault instanceof RefusedException.SessionEnded || fault instanceof SeraphimException.Unreachable,
          fault.toString());
      assertTrue(fault.getMessage().contains("server"), fault.getMessage());
      session.close();
    }
  }

  @Test
  void replicas_need_two_servers_and_an_unknown_durability_is_refused() {
    try (TestServers servers = TestServers.start()) {
      RefusedException fault = assertThrows(RefusedException.class, () -> ParameterSession.open(
          servers.address(), new byte[0], "test", FAST.withServers(1).withDurability("replica")));
      assertTrue(fault.getMessage().contains("at least two servers"), fault.getMessage());
    }
    IllegalArgumentException unknown =
        assertThrows(IllegalArgumentException.class, () -> FAST.withDurability("replicas"));
    assertTrue(unknown.getMessage().contains("synced-log"), unknown.getMessage());
  }

  @Test
  void when_a_server_with_replicas_is_killed_its_standby_goes_on_with_the_session() {
    try (TestServers servers = TestServers.start();
        ParameterSession session =
            ParameterSession.open(servers.address(), new byte[0], "test", FAST.withDurability("replica"))) {
      ServerMatrix matrix = session.createMatrix(SPEC);
      double[] values = new double[COLUMNS];
      java.util.Arrays.fill(values, 1.5);
      for (int round = 0; round < 6; round++) {
        StagedPush push = matrix.stage(new PushIdentity(round + 1, 0, round)).add(0, values);
        if (round == 2) {
          servers.killOneServer();
        }
        push.commit();
      }
      double[] expected = new double[COLUMNS];
      java.util.Arrays.fill(expected, 9.0);
      assertArrayEquals(expected, matrix.pull(0));
      assertEquals(10, session.createMatrix(new MatrixSpec("later", 1, 10, 2)).pull(0).length);
    }
  }

  @Test
  void a_killed_server_with_a_write_ahead_log_goes_on_with_the_session(@TempDir Path logs) {
    try (TestServers servers = TestServers.start("--write-ahead-log", logs.toString());
        ParameterSession session = ParameterSession.open(servers.address(), new byte[0], "test", FAST)) {
      ServerMatrix matrix = session.createMatrix(SPEC);
      double[] values = new double[COLUMNS];
      java.util.Arrays.fill(values, 1.5);
      for (int round = 0; round < 6; round++) {
        StagedPush push = matrix.stage(new PushIdentity(round + 1, 0, round)).add(0, values);
        servers.killOneServer();
        push.commit();
        matrix.await(List.of(matrix.closeToken(round + 1)));
        double[] expected = new double[COLUMNS];
        java.util.Arrays.fill(expected, 1.5 * (round + 1));
        assertArrayEquals(expected, matrix.pull(0), "round " + round);
      }
    }
  }

  @Test
  void when_a_server_of_a_cluster_is_killed_the_master_tells_the_reason() throws Exception {
    try (TestMembers members = new TestMembers()) {
      ParameterSession session = ParameterSession.open(members.address(), new byte[0], "test", FAST);
      ServerMatrix matrix = session.createMatrix(new MatrixSpec("w", 2, COLUMNS, 2));
      double[] values = new double[COLUMNS];
      matrix.stage(new PushIdentity(1, 0, 0)).add(0, values).commit();
      members.killOneServer();
      RefusedException.SessionEnded fault = assertThrows(RefusedException.SessionEnded.class, () -> {
        while (true) {
          matrix.stage(new PushIdentity(2, 0, 0)).add(0, values).commit();
        }
      });
      assertTrue(fault.text().contains("server-0"), fault.text());
    }
  }

  @Test
  void reads_staged_pushes_and_commits_survive_cut_connections() throws Exception {
    try (TestServers servers = TestServers.start(); ProxiedSession proxied = new ProxiedSession(servers, SPEC, FAST)) {
      ServerMatrix matrix = proxied.session().matrix("w");
      double[] values = new java.util.Random(1).doubles(COLUMNS).toArray();
      for (int round = 0; round < 20; round++) {
        // Within the answers to chunks, to commits, to functions, and within pulled values.
        proxied.proxy(round % 2).cutAnswersAfter(round * 37L);
        matrix.stage(new PushIdentity(round + 1, 0, round)).add(0, values).commit();
        matrix.await(List.of(matrix.closeToken(round + 1)));
        proxied.proxy(round % 2).cutAnswersAfter(1000L + 100_000L * round);
        double[] pulled = matrix.pull(0);
        assertEquals((round + 1) * values[COLUMNS - 1], pulled[COLUMNS - 1], 1e-12 * (round + 1), "round " + round);
        proxied.proxy(round % 2).cutAnswersAfter(20);
        matrix.pushRepeatableFunctions(FunctionCall.of("copy", new int[] {0}, new int[] {1}));
        assertArrayEquals(pulled, matrix.pull(1));
      }
      assertTrue(proxied.connections() > 20, "connections were cut: " + proxied.connections());
    }
  }

  @Test
  void a_plain_push_whose_answer_is_lost_is_an_error_and_not_sent_twice() throws Exception {
    try (TestServers servers = TestServers.start(); ProxiedSession proxied = new ProxiedSession(servers, SPEC, FAST)) {
      ServerMatrix matrix = proxied.session().matrix("w");
      matrix.pull(0);
      proxied.proxy(0).cutAnswersAfter(10);
      proxied.proxy(1).cutAnswersAfter(10);
      SeraphimException.ConnectionLost fault = assertThrows(
          SeraphimException.ConnectionLost.class, () -> matrix.push(0, 0, new double[] {1}, 0, 1));
      assertTrue(fault.getMessage().contains("must not be sent twice"), fault.getMessage());
      assertEquals(1, matrix.pull(0)[0]);
    }
  }

  @Test
  void answers_that_do_not_come_are_asked_for_again() throws Exception {
    try (TestServers servers = TestServers.start(); ProxiedSession proxied = new ProxiedSession(servers, SPEC, FAST)) {
      ServerMatrix matrix = proxied.session().matrix("w");
      matrix.pull(0);
      proxied.proxy(0).silence();
      proxied.proxy(1).silence();
      assertArrayEquals(new double[COLUMNS], matrix.pull(0));
    }
  }

  @Test
  void a_deadline_ends_a_wait() throws Exception {
    try (TestServers servers = TestServers.start()) {
      ClientOptions patient = FAST.withSilenceLimit(Duration.ofHours(1)).withDeadline(Duration.ofMillis(300));
      try (ProxiedSession proxied = new ProxiedSession(servers, SPEC, patient)) {
        ServerMatrix matrix = proxied.session().matrix("w");
        matrix.pull(0);
        proxied.proxy(0).silence();
        proxied.proxy(1).silence();
        SeraphimException.DeadlineExceeded fault =
            assertThrows(SeraphimException.DeadlineExceeded.class, () -> matrix.pull(0));
        assertTrue(fault.getMessage().contains("has not answered PULL"), fault.getMessage());
      }
    }
  }

  @Test
  void a_matrix_of_another_session_is_refused() {
    try (TestServers servers = TestServers.start(); ParameterSession one = servers.session("one");
        ParameterSession two = servers.session("two")) {
      one.createMatrix(new MatrixSpec("w", 1, 10, 1));
      ServerMatrix second = one.createMatrix(new MatrixSpec("v", 1, 10, 1));
      assertThrows(IllegalArgumentException.class, () -> two.matrix("w"));
      two.createMatrix(new MatrixSpec("w", 1, 10, 1));
      PendingRequest foreign = two.lane(0).send(
          Requests.pull(two.number(), second.number(), 0, new ColumnRange(0, 0, 10)), true);
      assertThrows(RefusedException.class, () -> two.await(foreign, Kind.PULLED));
    }
  }

  @Test
  void a_lease_is_renewed_while_the_session_is_open() {
    try (TestServers servers = TestServers.start()) {
      ParameterSession session =
          ParameterSession.open(servers.address(), new byte[0], "test", FAST.withLease(Duration.ofSeconds(1)));
      ServerMatrix matrix = session.createMatrix(new MatrixSpec("w", 1, 10, 1));
      long end = System.nanoTime() + Duration.ofMillis(2500).toNanos();
      while (System.nanoTime() < end) {
        matrix.pull(0);
      }
      session.close();
    }
  }
}
