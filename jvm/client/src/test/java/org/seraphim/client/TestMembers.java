package org.seraphim.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A master and two servers as processes of their own: the master goes on when a server is lost. */
final class TestMembers implements AutoCloseable {
  private static final Pattern ADDRESS = Pattern.compile("master is ready.*?tcp:([^\"\\s,]+)");
  private static final Pattern JOINED = Pattern.compile("server (joined)");

  private final List<Process> processes = new ArrayList<>();
  private final String address;

  TestMembers() throws IOException {
    address = start(ADDRESS, "master", "--listen", "127.0.0.1:0");
    for (int i = 0; i < 2; i++) {
      start(JOINED, "server", "--master", address, "--lanes", "1", "--name", "server-" + i);
    }
  }

  String address() {
    return address;
  }

  void killOneServer() {
    processes.get(1).destroyForcibly();
  }

  /** Starts a process, and returns what a line of its output has. */
  private String start(Pattern line, String... arguments) throws IOException {
    Path binary = TestServers.binaryOrSkip();
    List<String> command = new ArrayList<>(List.of(binary.toString()));
    command.addAll(Arrays.asList(arguments));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    processes.add(process);
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    for (String text = out.readLine(); text != null; text = out.readLine()) {
      Matcher found = line.matcher(text);
      if (found.find()) {
        Threads.daemon("output of " + arguments[0], () -> out.lines().forEach(rest -> {}));
        return found.group(1);
      }
    }
    throw new IOException(String.join(" ", command) + " has ended");
  }

  @Override
  public void close() {
    processes.forEach(Process::destroyForcibly);
  }
}
