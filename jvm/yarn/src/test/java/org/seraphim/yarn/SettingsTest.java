package org.seraphim.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SettingsTest {
  @Test
  void every_key_is_read(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("application.properties");
    Files.write(file, Arrays.asList(
        "stage = file:///stage/ä", "roles = master, worker", "deciding_role = master", "max_failures = 2",
        "failure_window_s = 60", "files = seraphim=hdfs://h:1/a=b;job.json=hdfs://h:1/j", "environment.RUST_LOG = info",
        "role.master.count = 1", "role.master.memory_mib = 512", "role.master.command = ./seraphim master",
        "role.master.node_label = fast", "role.worker.count = 3", "role.worker.memory_mib = 1024",
        "role.worker.vcores = 4", "role.worker.command = ./seraphim worker --name \"w\"", "role.worker.hosts = h1,h2",
        "role.worker.priority = 7"), StandardCharsets.UTF_8);
    Settings settings = Settings.read(file);
    assertEquals("file:///stage/ä", settings.stage);
    assertEquals(2, settings.maxFailures);
    assertEquals(60_000, settings.failureWindowMs);
    assertEquals("{seraphim=hdfs://h:1/a=b, job.json=hdfs://h:1/j}", settings.files.toString());
    assertEquals("{RUST_LOG=info}", settings.environment.toString());
    RoleSettings master = settings.roles.get(0);
    assertEquals("fast", master.nodeLabel);
    assertEquals(1, master.vcores);
    assertEquals(1, master.priority);
    RoleSettings worker = settings.roles.get(1);
    assertEquals(Arrays.asList("h1", "h2"), worker.hosts);
    assertEquals("./seraphim worker --name \"w\"", worker.command);
    assertEquals("3 1024 4 7", worker.count + " " + worker.memoryMib + " " + worker.vcores + " " + worker.priority);
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "stage", "roles", "deciding_role", "role.server.count", "role.server.memory_mib", "role.server.command"})
  void a_missing_key_is_named(String key) {
    assertFault(key, assertThrows(IllegalArgumentException.class, () -> TestSettings.without(key)));
  }

  @ParameterizedTest
  @CsvSource({
      "role.server.count, 0", "role.server.count, two", "role.server.memory_mib, -1", "role.server.vcores, 0",
      "deciding_role, leader", "roles, 'master,,worker'", "roles, 'master,server,worker,master'", "files, seraphim",
      "max_failures, -1", "failure_window_s, 0", "max_failure, 3", "role.serve.count, 2", "role.server.size, 2"})
  void a_wrong_value_is_an_error_that_names_the_key(String key, String value) {
    assertFault(key, assertThrows(IllegalArgumentException.class, () -> TestSettings.with(key, value)));
  }

  @Test
  void hosts_and_a_label_exclude_each_other() {
    java.util.Properties properties = TestSettings.properties();
    properties.setProperty("role.server.hosts", "h1");
    properties.setProperty("role.server.node_label", "fast");
    assertFault("role.server.hosts", assertThrows(IllegalArgumentException.class, () -> new Settings(properties)));
  }

  @Test
  void a_role_that_is_too_large_names_the_flag_to_lower() {
    RoleSettings server = TestSettings.with("role.server.vcores", "8").roles.get(1);
    assertNull(server.excessOver(256, 8));
    String text = server.excessOver(128, 8);
    assertTrue(text.contains("256 MiB and 8 vcores") && text.contains("128 MiB"), text);
    assertTrue(text.endsWith("lower --server-memory"), text);
    assertTrue(server.excessOver(256, 4).endsWith("lower --vcores"));
    assertTrue(server.excessOver(128, 4).endsWith("lower --server-memory and --vcores"));
  }

  private static void assertFault(String key, IllegalArgumentException fault) {
    assertTrue(fault.getMessage().contains("the key " + key + " "), fault.getMessage());
  }
}
