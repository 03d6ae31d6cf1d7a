package org.seraphim.yarn;

/** One process that the application keeps running: a rank of a role. */
final class Task {
  final RoleSettings role;
  final int rank;

  Task(RoleSettings role, int rank) {
    this.role = role;
    this.rank = rank;
  }

  /** The id of its request. A later attempt of the Application Master recognizes the task by it; 0 means no id. */
  long requestId() {
    return (role.index + 1L << Integer.SIZE) + rank;
  }

  @Override
  public String toString() {
    return role.name + " " + rank;
  }
}
