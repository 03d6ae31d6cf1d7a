package org.seraphim.yarn;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.LocalResourceType;
import org.apache.hadoop.yarn.api.records.LocalResourceVisibility;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.URL;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/** Starts and stops containers on their nodes. */
final class Launcher {
  /** Nodes that are asked at the same time. A node that does not answer keeps a thread busy for minutes. */
  private static final int THREADS = 16;

  private final Settings settings;
  private final Map<String, LocalResource> files = new HashMap<>();
  private final ByteBuffer tokens;
  private final NMClient nodes = NMClient.createNMClient();
  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, task -> {
    Thread thread = new Thread(task, "launcher");
    thread.setDaemon(true);
    return thread;
  });

  /** Fails with {@link FileNotFoundException} if a file of the settings is missing. */
  Launcher(Settings settings, Configuration configuration) throws IOException {
    this.settings = settings;
    for (Map.Entry<String, String> file : settings.files.entrySet()) {
      try {
        files.put(file.getKey(), resource(new Path(file.getValue()), configuration));
      } catch (FileNotFoundException e) {
        throw new FileNotFoundException(
            "application.properties: the key files names " + file.getValue() + ", which is not there");
      }
    }
    tokens = tokens();
    nodes.init(configuration);
    nodes.start();
    // A later attempt goes on with the containers.
    nodes.cleanupRunningContainersOnStop(false);
  }

  private static LocalResource resource(Path path, Configuration configuration) throws IOException {
    FileSystem system = path.getFileSystem(configuration);
    FileStatus status = system.getFileStatus(path);
    return LocalResource.newInstance(
        URL.fromPath(system.makeQualified(path)), LocalResourceType.FILE, LocalResourceVisibility.APPLICATION,
        status.getLen(), status.getModificationTime());
  }

  /** The credentials of this process, except the token with which it talks to YARN as Application Master. */
  private static ByteBuffer tokens() throws IOException {
    Credentials own = UserGroupInformation.getCurrentUser().getCredentials();
    Credentials passedOn = new Credentials();
    own.getAllTokens().stream()
        .filter(token -> !token.getKind().equals(AMRMTokenIdentifier.KIND_NAME))
        .forEach(token -> passedOn.addToken(token.getService(), token));
    own.getAllSecretKeys().forEach(name -> passedOn.addSecretKey(name, own.getSecretKey(name)));
    DataOutputBuffer buffer = new DataOutputBuffer();
    passedOn.writeTokenStorageToStream(buffer);
    return ByteBuffer.wrap(buffer.getData(), 0, buffer.getLength());
  }

  void start(Task task, long incarnation, Container container, Consumer<Exception> onFault) {
    Map<String, String> environment = new HashMap<>(settings.environment);
    environment.put("SERAPHIM_ROLE", task.role.name);
    environment.put("SERAPHIM_RANK", Integer.toString(task.rank));
    environment.put("SERAPHIM_INCARNATION", Long.toString(incarnation));
    environment.put("SERAPHIM_STAGE", settings.stage);
    ContainerLaunchContext context = ContainerLaunchContext.newInstance(
        files, environment, Collections.singletonList(command(task.role.command)), null, tokens.duplicate(), null);
    threads.execute(() -> run(() -> nodes.startContainer(container, context), onFault));
  }

  void stop(ContainerId container, NodeId node, Consumer<Exception> onFault) {
    threads.execute(() -> run(() -> nodes.stopContainer(container, node), onFault));
  }

  /** YARN puts the command between double quotes, as an argument of bash. */
  static String command(String line) {
    return "exec " + line.replaceAll("[\\\\\"$`]", "\\\\$0")
        + " 1>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stdout"
        + " 2>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stderr";
  }

  private interface Call {
    void run() throws IOException, YarnException;
  }

  private static void run(Call call, Consumer<Exception> onFault) {
    try {
      call.run();
    } catch (IOException | YarnException | RuntimeException e) {
      onFault.accept(e);
    }
  }
}
