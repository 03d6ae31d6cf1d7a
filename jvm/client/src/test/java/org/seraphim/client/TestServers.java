package org.seraphim.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assumptions;

/**
 * A parameter service with real server processes. The binary is that of the system property or environment variable
 * {@code SERAPHIM_BIN}, or else that of the release build of this repository. Without it a test is skipped.
 */
public final class TestServers implements AutoCloseable {
  private final Process process;
  private final String address;

  private TestServers(Process process, String address) {
    this.process = process;
    this.address = address;
  }

  /** Starts a service with two servers at a free port, and other flags. */
  public static TestServers start(String... flags) {
    Path binary = binaryOrSkip();
    List<String> command = new ArrayList<>(List.of(
        binary.toString(), "serve-parameters", "--servers", "2", "--listen", "127.0.0.1:0", "--json"));
    command.addAll(Arrays.asList(flags));
    try {
      ProcessBuilder.Redirect log = ProcessBuilder.Redirect.appendTo(Path.of("target", "servers.log").toFile());
      Process process = new ProcessBuilder(command).redirectError(log).start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
      return new TestServers(process, readAddress(process));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The binary of Seraphim. The test is skipped without it. */
  public static Path binaryOrSkip() {
    Path binary = binary();
    if (!Files.isExecutable(binary)) {
      String line = "SKIPPED: there is no binary of Seraphim at " + binary.toAbsolutePath().normalize()
          + "; build it with cargo build --release, or set SERAPHIM_BIN";
      System.err.println(line);
      Assumptions.abort(line);
    }
    return binary.toAbsolutePath();
  }

  private static Path binary() {
    String set = System.getProperty("SERAPHIM_BIN", System.getenv("SERAPHIM_BIN"));
    return set == null || set.isEmpty() ? Repository.path("target/release/seraphim") : Path.of(set);
  }

  private static String readAddress(Process process) throws IOException {
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    StringBuilder json = new StringBuilder();
    for (String line = out.readLine(); line != null; line = out.readLine()) {
      json.append(line);
      if (line.startsWith("}")) {
        Map<?, ?> fields = (Map<?, ?>) Json.parse(json.toString().getBytes(StandardCharsets.UTF_8));
        return (String) fields.get("address");
      }
    }
    throw new IOException("the service has ended before it printed its address: " + json);
  }

  /** The address of the master. */
  public String address() {
    return address;
  }

  /** Opens a session without a shared secret. */
  public ParameterSession session(String name) {
    return ParameterSession.open(address, new byte[0], name);
  }

  /** The server processes. */
  public List<ProcessHandle> servers() {
    return process.toHandle().children().collect(Collectors.toList());
  }

  /** Ends one server process at once, as a crash does. */
  public void killOneServer() {
    servers().get(0).destroyForcibly();
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(20, TimeUnit.SECONDS)) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
