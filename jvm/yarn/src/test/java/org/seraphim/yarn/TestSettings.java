package org.seraphim.yarn;

import java.util.Properties;

/** Settings of an application with one master, two servers and one worker. */
final class TestSettings {
  private TestSettings() {}

  static Properties properties() {
    Properties properties = new Properties();
    properties.setProperty("stage", "hdfs://host:8020/stage");
    properties.setProperty("roles", "master,server,worker");
    properties.setProperty("deciding_role", "master");
    properties.setProperty("max_failures", "3");
    properties.setProperty("failure_window_s", "100");
    for (String role : new String[] {"master", "server", "worker"}) {
      properties.setProperty("role." + role + ".count", role.equals("server") ? "2" : "1");
      properties.setProperty("role." + role + ".memory_mib", "256");
      properties.setProperty("role." + role + ".command", "./program " + role);
    }
    return properties;
  }

  static Settings with(String key, String value) {
    Properties properties = properties();
    properties.setProperty(key, value);
    return new Settings(properties);
  }

  static Settings without(String key) {
    Properties properties = properties();
    properties.remove(key);
    return new Settings(properties);
  }
}
