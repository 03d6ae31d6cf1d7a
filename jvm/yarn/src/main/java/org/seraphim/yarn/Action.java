package org.seraphim.yarn;

import java.util.function.Consumer;

/** Something that the {@link Supervisor} wants to be done. Two actions are the same if their texts are. */
final class Action {
  /** Does the actions. */
  interface Handler {
    void log(String sentence);

    /** Asks YARN for a container. */
    void request(Task task);

    /** Takes a request back. */
    void withdraw(Task task);

    void start(Task task, long incarnation, Placement placement);

    /** Gives back a container in which nothing runs. */
    void release(Placement placement);

    /** Ends the process in a container. Its end is reported like any other. */
    void stop(Placement placement);

    /** Looks for the result of the program, and reports it to {@link Supervisor#result}. */
    void readResult();

    /** Tells YARN that the application has ended. */
    void end(Result result);
  }

  private final String text;
  private final Consumer<Handler> call;

  private Action(String text, Consumer<Handler> call) {
    this.text = text;
    this.call = call;
  }

  void perform(Handler handler) {
    call.accept(handler);
  }

  @Override
  public String toString() {
    return text;
  }

  static Action log(String sentence) {
    return new Action("log " + sentence, handler -> handler.log(sentence));
  }

  static Action request(Task task) {
    return new Action("request " + task, handler -> handler.request(task));
  }

  static Action withdraw(Task task) {
    return new Action("withdraw " + task, handler -> handler.withdraw(task));
  }

  static Action start(Task task, long incarnation, Placement placement) {
    return new Action("start " + task + " incarnation " + incarnation + " in " + placement.container,
        handler -> handler.start(task, incarnation, placement));
  }

  static Action release(Placement placement) {
    return new Action("release " + placement.container, handler -> handler.release(placement));
  }

  static Action stop(Placement placement) {
    return new Action("stop " + placement.container, handler -> handler.stop(placement));
  }

  static Action readResult() {
    return new Action("read the result", Handler::readResult);
  }

  static Action end(Result result) {
    return new Action("end " + result.status + ": " + result.text, handler -> handler.end(result));
  }
}
