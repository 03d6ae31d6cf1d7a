package org.seraphim.yarn;

/** How the application ends, as the program has written it: a first line with the status, then a text. */
final class Result {
  enum Status { SUCCEEDED, FAILED, CANCELLED }

  final Status status;
  final String text;

  Result(Status status, String text) {
    this.status = status;
    this.text = text;
  }

  /** Returns null if the file is empty: the program has ended before it wrote the result. */
  static Result parse(String content) {
    String[] parts = content.split("\r?\n", 2);
    String text = parts.length > 1 ? parts[1].trim() : "";
    switch (parts[0].trim()) {
      case "":
        return null;
      case "succeeded":
        return new Result(Status.SUCCEEDED, text);
      case "failed":
        return new Result(Status.FAILED, text);
      case "cancelled":
        return new Result(Status.CANCELLED, text);
      default:
        return new Result(Status.FAILED, "the file result in the stage begins with \"" + parts[0].trim()
            + "\" instead of succeeded, failed or cancelled: " + text);
    }
  }
}
