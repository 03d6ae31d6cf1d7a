package org.seraphim.yarn;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.security.PrivilegedExceptionAction;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationConstants.Environment;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.webapp.util.WebAppUtils;

/**
 * The process that YARN starts for an application. It carries events of YARN to the {@link Supervisor}, and does what the
 * Supervisor decides. One thread does both, in the order of the events.
 */
public final class ApplicationMaster implements Action.Handler {
  /** How often YARN is asked for news: a container that has ended is replaced as soon. */
  private static final int HEARTBEAT_MS = 250;
  private static final int TICK_MS = 250;
  private static final int RESULT_RETRY_MS = 1_000;
  /** A longer result is cut. */
  private static final int MAX_RESULT_BYTES = 64 << 10;
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS");

  private final Configuration configuration = new YarnConfiguration();
  private final ContainerId ownContainer = ContainerId.fromString(System.getenv(Environment.CONTAINER_ID.name()));
  private final String user;
  private final AMRMClientAsync<ContainerRequest> resourceManager =
      AMRMClientAsync.createAMRMClientAsync(HEARTBEAT_MS, new Events());
  private final ScheduledExecutorService loop = Executors.newSingleThreadScheduledExecutor();
  private final CompletableFuture<Integer> exitCode = new CompletableFuture<>();
  private final Map<Task, ContainerRequest> requests = new HashMap<>();
  private final Map<String, Container> containers = new HashMap<>();
  private Settings settings;
  private Launcher launcher;
  private Supervisor supervisor;
  private Resource largest;
  private volatile float progress;

  private ApplicationMaster(String user) {
    this.user = user;
  }

  /** Ends with 0 after the end of the application, and with 1 where another attempt has to go on. */
  public static void main(String[] arguments) throws Exception {
    // Without Kerberos this process may run as the user of the daemons; files belong to the one who has submitted.
    UserGroupInformation user = UserGroupInformation.createRemoteUser(System.getenv(Environment.USER.name()));
    user.addCredentials(UserGroupInformation.getCurrentUser().getCredentials());
    PrivilegedExceptionAction<Integer> run = () -> new ApplicationMaster(user.getShortUserName()).run();
    System.exit(user.doAs(run));
  }

  private int run() throws Exception {
    resourceManager.init(configuration);
    resourceManager.start();
    // Events that come while this runs wait for its end.
    loop.execute(() -> guard(this::register));
    return exitCode.get();
  }

  private void register() throws IOException, YarnException {
    RegisterApplicationMasterResponse registration =
        resourceManager.registerApplicationMaster(InetAddress.getLocalHost().getHostName(), -1, "");
    largest = registration.getMaximumResourceCapability();
    Result result = null;
    try {
      settings = Settings.read(Paths.get("application.properties"));
      // A process that has ended before the registration has written its result before now.
      result = findResult();
      launcher = new Launcher(settings, configuration);
    } catch (IllegalArgumentException | FileNotFoundException e) {
      // Another attempt would find the same. After the result nobody needs the files.
      end(result == null ? new Result(Result.Status.FAILED, e.getMessage() + "; submit again") : result);
      return;
    }
    begin(registration.getContainersFromPreviousAttempts(), result);
  }

  private void begin(List<Container> kept, Result result) {
    int attempt = ownContainer.getApplicationAttemptId().getAttemptId();
    log("Attempt " + attempt + " of the Application Master begins. The stage is " + settings.stage + ".");
    supervisor = new Supervisor(settings, attempt);
    kept.forEach(this::recover);
    handle(now -> supervisor.begin(now, result));
    loop.scheduleWithFixedDelay(() -> handle(now -> supervisor.tick(now)), TICK_MS, TICK_MS, TimeUnit.MILLISECONDS);
  }

  /** Gives an event to the Supervisor and does what it decides. Only the loop calls this. */
  private void handle(LongFunction<List<Action>> event) {
    guard(() -> {
      if (supervisor != null) {
        event.apply(TimeUnit.NANOSECONDS.toMillis(System.nanoTime())).forEach(action -> action.perform(this));
        progress = supervisor.progress();
      }
    });
  }

  private void post(LongFunction<List<Action>> event) {
    loop.execute(() -> handle(event));
  }

  private interface Step {
    void run() throws IOException, YarnException;
  }

  /** A fault ends this attempt, and the next one goes on. */
  private void guard(Step step) {
    try {
      step.run();
    } catch (IOException | YarnException | RuntimeException | Error e) {
      giveUp("This attempt ends with a fault, and the next one goes on: " + e, e);
    }
  }

  private void giveUp(String reason, Throwable cause) {
    log(reason);
    if (cause != null) {
      cause.printStackTrace();
    }
    exitCode.complete(1);
  }

  private void recover(Container container) {
    Placement placement = place(container);
    handle(now -> supervisor.recovered(container.getAllocationRequestId(), placement));
  }

  private Placement place(Container container) {
    String id = container.getId().toString();
    containers.put(id, container);
    String logs = WebAppUtils.getHttpSchemePrefix(configuration) + container.getNodeHttpAddress()
        + "/node/containerlogs/" + id + "/" + user;
    return new Placement(id, container.getNodeId().toString(), logs);
  }

  private Result findResult() throws IOException {
    Path path = new Path(settings.stage, "result");
    byte[] content = new byte[MAX_RESULT_BYTES];
    try (InputStream file = path.getFileSystem(configuration).open(path)) {
      int length = 0;
      for (int count = 0; count >= 0 && length < content.length; length += Math.max(count, 0)) {
        count = file.read(content, length, content.length - length);
      }
      return Result.parse(new String(content, 0, length, StandardCharsets.UTF_8));
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  @Override
  public void log(String sentence) {
    System.out.println(LocalDateTime.now().format(TIME) + " " + sentence);
  }

  @Override
  public void request(Task task) {
    RoleSettings role = task.role;
    String excess = role.excessOver(largest.getMemorySize(), largest.getVirtualCores());
    if (excess != null) {
      post(now -> supervisor.refused(now, excess));
      return;
    }
    ContainerRequest request = ContainerRequest.newBuilder()
        .capability(Resource.newInstance(role.memoryMib, role.vcores))
        .priority(Priority.newInstance(role.priority))
        .allocationRequestId(task.requestId())
        .nodes(role.hosts.isEmpty() ? null : role.hosts.toArray(new String[0]))
        .nodeLabelsExpression(role.nodeLabel.isEmpty() ? null : role.nodeLabel)
        .build();
    requests.put(task, request);
    resourceManager.addContainerRequest(request);
  }

  @Override
  public void withdraw(Task task) {
    ContainerRequest request = requests.remove(task);
    if (request != null) {
      resourceManager.removeContainerRequest(request);
    }
  }

  @Override
  public void start(Task task, long incarnation, Placement placement) {
    launcher.start(task, incarnation, containers.get(placement.container), fault -> post(now -> supervisor.startFailed(
        now, placement.container, new Exit(ContainerExitStatus.INVALID, false, "it could not be started: " + fault))));
  }

  @Override
  public void release(Placement placement) {
    resourceManager.releaseAssignedContainer(containers.remove(placement.container).getId());
  }

  @Override
  public void stop(Placement placement) {
    Container container = containers.get(placement.container);
    launcher.stop(container.getId(), container.getNodeId(), fault -> loop.execute(() -> {
      log(placement + " could not be stopped, and is given back: " + fault);
      resourceManager.releaseAssignedContainer(container.getId());
    }));
  }

  @Override
  public void readResult() {
    guard(() -> {
      try {
        Result result = findResult();
        post(now -> supervisor.result(now, result));
      } catch (IOException e) {
        log("The stage " + settings.stage + " cannot be read now: " + e);
        loop.schedule(this::readResult, RESULT_RETRY_MS, TimeUnit.MILLISECONDS);
      }
    });
  }

  @Override
  public void end(Result result) {
    guard(() -> {
      resourceManager.unregisterApplicationMaster(finalStatus(result.status), result.text, "");
      log("The application has ended as " + result.status + ".");
      removeStage();
      exitCode.complete(0);
    });
  }

  /** Nobody needs the files of an application that has ended: YARN keeps its result. */
  private void removeStage() {
    Path stage = new Path(settings.stage);
    try {
      stage.getFileSystem(configuration).delete(stage, true);
    } catch (IOException e) {
      log("The stage " + settings.stage + " cannot be removed: " + e);
    }
  }

  private static FinalApplicationStatus finalStatus(Result.Status status) {
    switch (status) {
      case SUCCEEDED:
        return FinalApplicationStatus.SUCCEEDED;
      case FAILED:
        return FinalApplicationStatus.FAILED;
      case CANCELLED:
        return FinalApplicationStatus.KILLED;
      default:
        throw new AssertionError(status);
    }
  }

  /** Tells by the code of YARN whether the program has ended by itself. */
  static Exit exit(int code, String diagnostics) {
    String text = diagnostics.trim().replaceAll("\\s*\n\\s*", " ");
    switch (code) {
      case ContainerExitStatus.ABORTED:
      case ContainerExitStatus.DISKS_FAILED:
      case ContainerExitStatus.PREEMPTED:
      case ContainerExitStatus.KILLED_BY_APPMASTER:
      case ContainerExitStatus.KILLED_BY_RESOURCEMANAGER:
      case ContainerExitStatus.KILLED_AFTER_APP_COMPLETION:
      case ContainerExitStatus.KILLED_BY_CONTAINER_SCHEDULER:
        return new Exit(code, true, text);
      case ContainerExitStatus.KILLED_EXCEEDED_PMEM:
      case ContainerExitStatus.KILLED_EXCEEDED_VMEM:
        return new Exit(code, false, text + " It used more memory than its container has; raise the memory of its role");
      default:
        return new Exit(code, false, text);
    }
  }

  /** What YARN reports, on threads of its client. */
  private final class Events extends AMRMClientAsync.AbstractCallbackHandler {
    @Override
    public void onContainersAllocated(List<Container> allocated) {
      allocated.forEach(container -> post(
          now -> supervisor.allocated(container.getAllocationRequestId(), place(container))));
    }

    @Override
    public void onContainersReceivedFromPreviousAttempts(List<Container> recovered) {
      recovered.forEach(container -> loop.execute(() -> recover(container)));
    }

    @Override
    public void onContainersCompleted(List<ContainerStatus> completed) {
      completed.forEach(status -> post(now -> {
        String id = status.getContainerId().toString();
        containers.remove(id);
        return supervisor.ended(now, id, exit(status.getExitStatus(), status.getDiagnostics()));
      }));
    }

    @Override
    public void onShutdownRequest() {
      giveUp("YARN asks this attempt to end.", null);
    }

    @Override
    public void onError(Throwable fault) {
      if (fault instanceof InvalidResourceRequestException) {
        // The message goes on with the stack of the ResourceManager.
        String reason = String.valueOf(fault.getMessage()).split("\n", 2)[0];
        post(now -> supervisor.refused(now, "YARN refuses the request for a container: " + reason
            + "; check the memory, the vcores, the priority and the node label of the roles"));
      } else {
        giveUp("YARN cannot be reached: " + fault, fault);
      }
    }

    @Override
    public float getProgress() {
      return progress;
    }

    @Override
    public void onContainersUpdated(List<UpdatedContainer> updated) {}

    @Override
    public void onNodesUpdated(List<NodeReport> updated) {}
  }
}
