package org.seraphim.yarn;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Decides what happens to the containers of the application. It takes events and returns actions; it has no clock, and
 * knows nothing of Hadoop. Times are milliseconds that do not go back.
 *
 * <p>Each rank is in exactly one {@link State}. A container that belongs to a running rank is in {@code byContainer}; every
 * other container is given back. After the end of the application is decided nothing is started any more.
 */
final class Supervisor {
  /** How long the end of the application waits for containers to end. YARN ends those that are left. */
  static final long STOP_LIMIT_MS = 10_000;
  private static final long FIRST_DELAY_MS = 1_000;
  private static final long LAST_DELAY_MS = 30_000;
  /** More incarnations than one attempt of the Application Master can start. */
  private static final long INCARNATIONS_PER_ATTEMPT = 1_000_000;

  private enum State {
    /** It is asked for at {@code dueAt}. */
    DELAYED,
    REQUESTED,
    RUNNING,
    /** A process of the deciding role has ended; it is not known yet whether there is a result. */
    UNDECIDED
  }

  private static final class Rank {
    final Task task;
    State state = State.DELAYED;
    long dueAt;
    long incarnation;
    /** The last container, and how it ended. */
    Placement placement;
    Exit exit;
    /** Times of failures within the window. */
    final Deque<Long> failures = new ArrayDeque<>();

    Rank(Task task, long incarnation) {
      this.task = task;
      this.incarnation = incarnation;
    }
  }

  private final Settings settings;
  private final Map<Long, Rank> ranks = new LinkedHashMap<>();
  private final Map<String, Rank> byContainer = new LinkedHashMap<>();
  private List<Action> actions = new ArrayList<>();
  private Result end;
  private long endBy;
  private boolean hasEnded;

  /** {@code attempt} is the number of the attempt of the Application Master, from 1. */
  Supervisor(Settings settings, int attempt) {
    this.settings = settings;
    for (RoleSettings role : settings.roles) {
      for (int rank = 0; rank < role.count; rank++) {
        Task task = new Task(role, rank);
        ranks.put(task.requestId(), new Rank(task, (attempt - 1) * INCARNATIONS_PER_ATTEMPT));
      }
    }
  }

  /** The first event after {@link #recovered}. {@code result} is null if there is none. */
  List<Action> begin(long now, Result result) {
    boolean isDecided = byContainer.values().stream().noneMatch(this::decides);
    if (result != null && isDecided) {
      decide(now, result);
    } else {
      requestDue(now);
    }
    return takeActions();
  }

  /** A container of an earlier attempt runs, or YARN has found it again after a restart of its own. */
  List<Action> recovered(long requestId, Placement placement) {
    Rank rank = ranks.get(requestId);
    if (byContainer.containsKey(placement.container)) {
      return takeActions();
    }
    if (end != null || rank == null || rank.state == State.RUNNING || rank.state == State.UNDECIDED) {
      release(placement);
      return takeActions();
    }
    if (rank.state == State.REQUESTED) {
      actions.add(Action.withdraw(rank.task));
    }
    log(rank.task + " still runs in " + placement + ".");
    run(rank, placement);
    return takeActions();
  }

  /** YARN gives a container for a request. */
  List<Action> allocated(long requestId, Placement placement) {
    Rank rank = ranks.get(requestId);
    if (end != null || rank == null || rank.state != State.REQUESTED) {
      release(placement);
      return takeActions();
    }
    actions.add(Action.withdraw(rank.task));
    rank.incarnation++;
    log(name(rank) + " starts in " + placement + ".");
    run(rank, placement);
    actions.add(Action.start(rank.task, rank.incarnation, placement));
    return takeActions();
  }

  /** The process of a container has ended. Ends of containers that no rank has are ignored. */
  List<Action> ended(long now, String container, Exit exit) {
    Rank rank = byContainer.remove(container);
    if (rank == null) {
      return takeActions();
    }
    log(name(rank) + " in " + rank.placement + " " + exit + ".");
    rank.exit = exit;
    if (end != null) {
      endIfStopped(now);
    } else if (decides(rank)) {
      rank.state = State.UNDECIDED;
      actions.add(Action.readResult());
    } else {
      restart(now, rank);
    }
    return takeActions();
  }

  /** A container could not be started. */
  List<Action> startFailed(long now, String container, Exit exit) {
    Rank rank = byContainer.get(container);
    if (rank != null) {
      actions.add(Action.release(rank.placement));
    }
    return ended(now, container, exit);
  }

  /** The answer to {@link Action#readResult}; null if there is no result. */
  List<Action> result(long now, Result result) {
    if (result != null) {
      decide(now, result);
    }
    for (Rank rank : ranks.values()) {
      if (end == null && rank.state == State.UNDECIDED) {
        log("There is no result, so " + rank.task + " goes on.");
        restart(now, rank);
      }
    }
    return takeActions();
  }

  /** YARN will never fulfil a request. */
  List<Action> refused(long now, String reason) {
    decide(now, new Result(Result.Status.FAILED, reason));
    return takeActions();
  }

  List<Action> tick(long now) {
    if (end != null) {
      endIfStopped(now);
    } else {
      requestDue(now);
    }
    return takeActions();
  }

  /** 0 until every rank runs, and then 0.5: what comes after it is not known here. */
  float progress() {
    return byContainer.size() == ranks.size() ? 0.5f : 0;
  }

  private boolean decides(Rank rank) {
    return rank.task.role.name.equals(settings.decidingRole);
  }

  private void run(Rank rank, Placement placement) {
    rank.state = State.RUNNING;
    rank.placement = placement;
    byContainer.put(placement.container, rank);
  }

  private void release(Placement placement) {
    log("Nothing needs " + placement + "; it is released.");
    actions.add(Action.release(placement));
  }

  private void requestDue(long now) {
    for (Rank rank : ranks.values()) {
      if (rank.state == State.DELAYED && rank.dueAt <= now) {
        rank.state = State.REQUESTED;
        actions.add(Action.request(rank.task));
      }
    }
  }

  private void restart(long now, Rank rank) {
    if (!rank.exit.isLoss) {
      rank.failures.add(now);
    }
    while (!rank.failures.isEmpty() && rank.failures.peek() <= now - settings.failureWindowMs) {
      rank.failures.remove();
    }
    if (rank.failures.size() > settings.maxFailures) {
      decide(now, new Result(Result.Status.FAILED, failureText(rank)));
      return;
    }
    long delay = rank.exit.isLoss ? 0 : delay(rank.failures.size());
    if (delay > 0) {
      log(rank.task + " is asked for again in " + delay / 1000 + " s.");
    }
    rank.state = State.DELAYED;
    rank.dueAt = now + delay;
    requestDue(now);
  }

  /** No delay after the first failure, and then 1 s, 2 s, 4 s and so on. */
  private static long delay(int failures) {
    long delay = failures < 2 ? 0 : FIRST_DELAY_MS;
    for (int failure = 2; failure < failures && delay < LAST_DELAY_MS; failure++) {
      delay *= 2;
    }
    return Math.min(delay, LAST_DELAY_MS);
  }

  private String failureText(Rank rank) {
    return rank.task + " has ended by itself " + rank.failures.size() + " times within " + settings.failureWindowMs / 1000
        + " s, and the limit is " + settings.maxFailures + ". The last time, in " + rank.placement + ", it " + rank.exit
        + ". Its log tells why: " + rank.placement.logs;
  }

  private void decide(long now, Result result) {
    if (end != null) {
      return;
    }
    end = result;
    endBy = now + STOP_LIMIT_MS;
    log("The application ends as " + result.status + ": " + result.text);
    for (Rank rank : ranks.values()) {
      if (rank.state == State.REQUESTED) {
        actions.add(Action.withdraw(rank.task));
      }
    }
    byContainer.values().forEach(rank -> actions.add(Action.stop(rank.placement)));
    endIfStopped(now);
  }

  private void endIfStopped(long now) {
    if (!hasEnded && (byContainer.isEmpty() || now >= endBy)) {
      hasEnded = true;
      actions.add(Action.end(end));
    }
  }

  private static String name(Rank rank) {
    boolean isKept = rank.incarnation % INCARNATIONS_PER_ATTEMPT == 0;
    return rank.task + ", " + (isKept ? "started by an earlier attempt" : "incarnation " + rank.incarnation) + ",";
  }

  private void log(String sentence) {
    actions.add(Action.log(sentence));
  }

  private List<Action> takeActions() {
    List<Action> taken = actions;
    actions = new ArrayList<>();
    return taken;
  }
}
