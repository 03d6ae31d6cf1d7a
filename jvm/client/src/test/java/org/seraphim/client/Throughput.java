package org.seraphim.client;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.zip.CRC32C;

/**
 * Measures pulls and pushes of a dense vector, against a raw socket with checksums between two threads of this
 * process. It prints the median of the rounds in GB (10^9 bytes) per second.
 *
 * <p>Arguments: number of columns, number of rounds.
 */
final class Throughput {
  private static final int RAW_BYTES = 512 << 10;

  private Throughput() {}

  public static void main(String[] arguments) throws Exception {
    int columns = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 10_000_000;
    int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 7;
    try (TestServers servers = TestServers.start(); ParameterSession session = servers.session("throughput")) {
      ServerMatrix matrix = session.createMatrix(new MatrixSpec("w", 4, columns, 2));
      double[] values = new double[columns];
      Arrays.setAll(values, i -> i * 1e-6);
      double[] pulled = new double[columns];
      long[] token = {0};
      for (int i = 0; i < 2; i++) {
        report("raw socket with CRC", columns, rounds, () -> raw(8L * columns));
        report("pull", columns, rounds, () -> {
          matrix.pull(0, 0, pulled, 0, columns);
          return null;
        });
        report("plain push", columns, rounds, () -> {
          matrix.push(1, 0, values, 0, columns);
          return null;
        });
        report("staged push and commit", columns, rounds, () -> {
          matrix.stage(new PushIdentity(++token[0], 0, 0)).add(2, values).commit();
          matrix.await(List.of(matrix.closeToken(token[0])));
          return null;
        });
        report("dot", columns, rounds,
            () -> matrix.pullFunction(FunctionCall.of("dot", new int[] {1, 2}, new int[0])).sum());
      }
    }
  }

  private static void report(String what, int columns, int rounds, Callable<?> action) throws Exception {
    double[] rates = new double[rounds];
    for (int i = 0; i < rounds; i++) {
      long start = System.nanoTime();
      action.call();
      rates[i] = 8.0 * columns / (System.nanoTime() - start);
    }
    Arrays.sort(rates);
    System.out.printf("%-24s %.2f GB/s (%.2f to %.2f)%n", what, rates[rounds / 2], rates[0], rates[rounds - 1]);
  }

  /** Sends bytes with a checksum for each piece, and checks them at the other end. */
  private static Void raw(long total) throws Exception {
    try (ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
        SocketChannel out = SocketChannel.open(listener.getLocalAddress()); SocketChannel in = listener.accept()) {
      double[] source = new double[RAW_BYTES / 8];
      double[] target = new double[RAW_BYTES / 8];
      Thread sender = Threads.daemon("raw sender", () -> move(out, source, total, true));
      move(in, target, total, false);
      sender.join();
    }
    return null;
  }

  private static void move(SocketChannel channel, double[] values, long total, boolean isSender) {
    ByteBuffer bytes = ByteBuffer.allocateDirect(RAW_BYTES).order(java.nio.ByteOrder.LITTLE_ENDIAN);
    try {
      for (long left = total; left > 0; left -= RAW_BYTES) {
        bytes.clear();
        if (isSender) {
          bytes.asDoubleBuffer().put(values);
        } else {
          while (bytes.hasRemaining() && channel.read(bytes) >= 0) {
            // Until the piece is whole.
          }
          bytes.flip();
          bytes.asDoubleBuffer().get(values, 0, bytes.remaining() / 8);
        }
        CRC32C crc = new CRC32C();
        crc.update(bytes.duplicate());
        while (isSender && bytes.hasRemaining()) {
          channel.write(bytes);
        }
      }
      channel.shutdownOutput();
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
