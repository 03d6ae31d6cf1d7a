package org.seraphim.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Finds files of the repository from the folder of a module. */
final class Repository {
  private Repository() {}

  static Path path(String relative) {
    return Path.of("..", "..").resolve(relative);
  }

  static List<String> lines(String relative) {
    try {
      return Files.readAllLines(path(relative));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The golden frames by name. */
  static Map<String, byte[]> frames() {
    Map<String, byte[]> frames = new LinkedHashMap<>();
    for (String line : lines("crates/rpc/vectors/frames.txt")) {
      if (!line.startsWith("#")) {
        String[] words = line.split(" ");
        frames.put(words[0], bytes(words[1]));
      }
    }
    return frames;
  }

  private static byte[] bytes(String hex) {
    byte[] bytes = new byte[hex.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }
}
