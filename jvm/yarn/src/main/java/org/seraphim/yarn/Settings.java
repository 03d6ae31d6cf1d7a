package org.seraphim.yarn;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * What the client tells the Application Master: the file {@code application.properties} in its working directory, in the
 * format of {@link Properties} and UTF-8.
 *
 * <pre>
 * stage = hdfs://host:port/folder       the folder of the application
 * roles = master,server,worker          in the order of starting
 * deciding_role = master                the role whose end decides about the application
 * role.NAME.count = 2                   number of processes, at least 1
 * role.NAME.memory_mib = 1024
 * role.NAME.vcores = 1                  default 1
 * role.NAME.command = ./program ...     a line of bash; exec is put before it
 * role.NAME.hosts = host1,host2         optional: hosts that are preferred
 * role.NAME.node_label = label          optional; not together with hosts
 * role.NAME.priority = 1                default: the place in roles, from 1; smaller numbers come first
 * files = link=URI;link=URI             optional: files in the working directory of every container
 * environment.NAME = value              optional: for every container; YARN puts it into a script in double quotes
 * max_failures = 10                     failures of one rank that do not end the application; default 10
 * failure_window_s = 600                failures older than this are forgotten; default 600
 * </pre>
 *
 * <p>The program gets SERAPHIM_ROLE, SERAPHIM_RANK (from 0), SERAPHIM_INCARNATION and SERAPHIM_STAGE in its environment.
 * The incarnations of a rank grow: from 1 in the first attempt of the Application Master, from 1000001 in the second, from
 * 2000001 in the third. Standard output and error go to the files {@code stdout} and {@code stderr} of the container's
 * logs.
 *
 * <p>The program writes its result into the file {@code result} of the stage: a first line {@code succeeded},
 * {@code failed} or {@code cancelled}, and then the text of the diagnostics. It has to write another file and rename it.
 * The application ends when a process of the deciding role has ended and the file is there. Without the file, the process
 * is started again, like every other process that ends.
 */
final class Settings {
  private static final List<String> KEYS = Collections.unmodifiableList(Arrays.asList(
      "stage", "roles", "deciding_role", "files", "max_failures", "failure_window_s"));
  private static final String ENVIRONMENT = "environment.";

  final String stage;
  final List<RoleSettings> roles = new ArrayList<>();
  final String decidingRole;
  /** URIs by the names of the links in the working directory. */
  final Map<String, String> files = new LinkedHashMap<>();
  final Map<String, String> environment = new LinkedHashMap<>();
  final int maxFailures;
  final long failureWindowMs;

  private final Properties properties;
  /** Keys that nothing has read yet. */
  private final Set<String> unread;

  /**
   * Reads the file.
   *
   * @throws IllegalArgumentException if a value is missing or wrong; the message names its key
   */
  static Settings read(Path file) throws IOException {
    Properties properties = new Properties();
    try (Reader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
      properties.load(reader);
    }
    return new Settings(properties);
  }

  Settings(Properties properties) {
    this.properties = properties;
    this.unread = new TreeSet<>(properties.stringPropertyNames());
    stage = text("stage");
    maxFailures = (int) number("max_failures", 10L, 0, Integer.MAX_VALUE);
    failureWindowMs = 1000 * number("failure_window_s", 600L, 1, Integer.MAX_VALUE);
    for (String name : list("roles", text("roles"))) {
      roles.add(role(roles.size(), name));
    }
    decidingRole = text("deciding_role");
    check(roles.stream().anyMatch(role -> role.name.equals(decidingRole)),
        "deciding_role", "is \"" + decidingRole + "\", which roles does not name");
    readFiles();
    for (String key : properties.stringPropertyNames()) {
      if (key.startsWith(ENVIRONMENT)) {
        environment.put(key.substring(ENVIRONMENT.length()), text(key, ""));
      }
    }
    for (String key : unread) {
      check(false, key, "is unknown; known are " + KEYS + ", role.NAME.*, with a NAME of roles, and environment.NAME");
    }
  }

  private RoleSettings role(int index, String name) {
    String prefix = "role." + name + ".";
    String hosts = text(prefix + "hosts", "");
    String label = text(prefix + "node_label", "");
    check(hosts.isEmpty() || label.isEmpty(), prefix + "hosts", "cannot be used together with " + prefix + "node_label");
    check(roles.stream().noneMatch(role -> role.name.equals(name)), "roles", "names \"" + name + "\" twice");
    return new RoleSettings(
        index, name, (int) number(prefix + "count", null, 1, Integer.MAX_VALUE),
        number(prefix + "memory_mib", null, 1, Integer.MAX_VALUE),
        (int) number(prefix + "vcores", 1L, 1, Integer.MAX_VALUE), text(prefix + "command"),
        hosts.isEmpty() ? Collections.emptyList() : list(prefix + "hosts", hosts), label,
        (int) number(prefix + "priority", index + 1L, 0, Integer.MAX_VALUE));
  }

  private void readFiles() {
    String value = text("files", "");
    for (String entry : value.isEmpty() ? new String[0] : value.split(";")) {
      int at = entry.indexOf('=');
      check(at > 0 && at < entry.length() - 1, "files", "has \"" + entry + "\"; an entry is NAME=URI");
      files.put(entry.substring(0, at).trim(), entry.substring(at + 1).trim());
    }
  }

  private static List<String> list(String key, String value) {
    List<String> names = Arrays.stream(value.split(",", -1)).map(String::trim).collect(Collectors.toList());
    check(!names.contains(""), key, "is \"" + value + "\"; write names with one comma between them");
    return names;
  }

  private String text(String key) {
    String value = text(key, "");
    check(!value.isEmpty(), key, "is missing");
    return value;
  }

  private String text(String key, String absent) {
    unread.remove(key);
    return properties.getProperty(key, absent).trim();
  }

  /** {@code absent} is null if the key has to be there. */
  private long number(String key, Long absent, long min, long max) {
    String value = absent == null ? text(key) : text(key, absent.toString());
    long number = 0;
    try {
      number = Long.parseLong(value);
    } catch (NumberFormatException e) {
      check(false, key, "is \"" + value + "\"; it must be a whole number");
    }
    check(min <= number && number <= max, key, "is " + number + "; it must be from " + min + " to " + max);
    return number;
  }

  private static void check(boolean isGood, String key, String fault) {
    if (!isGood) {
      throw new IllegalArgumentException("application.properties: the key " + key + " " + fault);
    }
  }
}
