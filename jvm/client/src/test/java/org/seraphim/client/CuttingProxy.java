package org.seraphim.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Stands between a client and a lane, and cuts or silences connections. */
final class CuttingProxy implements AutoCloseable {
  private final ServerSocket listener;
  private final InetSocketAddress target;
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final AtomicInteger connections = new AtomicInteger();
  /** Bytes of answers that still pass; then the connection is cut or silent. */
  private final AtomicLong answerBytes = new AtomicLong(Long.MAX_VALUE);
  private volatile boolean isSilent;

  CuttingProxy(InetSocketAddress target) throws IOException {
    this.target = target;
    this.listener = new ServerSocket(0, 50, java.net.InetAddress.getLoopbackAddress());
    Threads.daemon("proxy", this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  int connections() {
    return connections.get();
  }

  /** Lets this many bytes of answers pass, and then cuts the connection, once. */
  void cutAnswersAfter(long bytes) {
    answerBytes.set(bytes);
  }

  /** Lets no answer pass from now on, until the connection is made again. */
  void silence() {
    isSilent = true;
  }

  private void accept() {
    try {
      while (true) {
        Socket client = listener.accept();
        connections.incrementAndGet();
        isSilent = false;
        Socket server = new Socket(target.getAddress(), target.getPort());
        sockets.add(client);
        sockets.add(server);
        Threads.daemon("to server", () -> pump(client, server, false));
        Threads.daemon("to client", () -> pump(server, client, true));
      }
    } catch (IOException e) {
      // The proxy was closed.
    }
  }

  private void pump(Socket from, Socket to, boolean areAnswers) {
    byte[] buffer = new byte[64 << 10];
    try (from; to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
        if (!areAnswers) {
          out.write(buffer, 0, count);
        } else if (!isSilent) {
          long left = answerBytes.addAndGet(-count);
          out.write(buffer, 0, (int) Math.max(0, Math.min(count, left + count)));
          if (left < 0) {
            answerBytes.set(Long.MAX_VALUE);
            return;
          }
        }
      }
    } catch (IOException e) {
      // One end has closed.
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }
}
