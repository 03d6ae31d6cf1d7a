package org.seraphim.yarn;

import java.util.ArrayList;
import java.util.List;

/** The processes of one role: how many, how large, and what they run. */
final class RoleSettings {
  /** The place of the role in the order of starting, from 0. */
  final int index;
  final String name;
  final int count;
  final long memoryMib;
  final int vcores;
  final String command;
  final List<String> hosts;
  /** Empty: nodes without a label. */
  final String nodeLabel;
  final int priority;

  RoleSettings(
      int index, String name, int count, long memoryMib, int vcores, String command, List<String> hosts,
      String nodeLabel, int priority) {
    this.index = index;
    this.name = name;
    this.count = count;
    this.memoryMib = memoryMib;
    this.vcores = vcores;
    this.command = command;
    this.hosts = hosts;
    this.nodeLabel = nodeLabel;
    this.priority = priority;
  }

  /** Says why no container can be as large as this role asks for, or returns null if one can. */
  String excessOver(long maxMemoryMib, int maxVcores) {
    List<String> flags = new ArrayList<>();
    if (memoryMib > maxMemoryMib) {
      flags.add("--" + name + "-memory");
    }
    if (vcores > maxVcores) {
      flags.add("--vcores");
    }
    return flags.isEmpty() ? null : "a container of the role " + name + " needs " + size(memoryMib, vcores)
        + ", but the largest one that YARN gives to this application has " + size(maxMemoryMib, maxVcores) + "; lower "
        + String.join(" and ", flags);
  }

  private static String size(long memoryMib, int vcores) {
    return memoryMib + " MiB and " + vcores + (vcores == 1 ? " vcore" : " vcores");
  }
}
