package org.seraphim.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.ArrayList;
import java.util.List;

/** A session whose connections to lanes go through proxies, made from the handle of another one. */
public final class ProxiedSession implements AutoCloseable {
  private final ParameterSession owner;
  private final ParameterSession session;
  private final List<CuttingProxy> proxies = new ArrayList<>();

  /** Opens a session with one matrix. */
  public ProxiedSession(TestServers servers, MatrixSpec spec, ClientOptions options) throws Exception {
    owner = servers.session("test");
    owner.createMatrix(spec);
    SessionHandle handle = copy(owner.handle());
    List<Endpoint> lanes = new ArrayList<>();
    for (Endpoint lane : handle.lanes) {
      proxies.add(new CuttingProxy(lane.socketAddress()));
      String address = "tcp:127.0.0.1:" + proxies.get(proxies.size() - 1).port();
      lanes.add(Endpoint.lane(List.of(address), handle.job, lane.lane, null));
    }
    session = ParameterSession.attach(new SessionHandle(
        handle.master, handle.job, handle.secret, options, lanes, handle.matrices));
  }

  /** The session. */
  public ParameterSession session() {
    return session;
  }

  CuttingProxy proxy(int lane) {
    return proxies.get(lane);
  }

  /** Cuts the connection to a lane when so many more bytes of answers have passed. */
  public void cutAnswersAfter(int lane, long bytes) {
    proxies.get(lane).cutAnswersAfter(bytes);
  }

  /** How often connections were made. */
  public int connections() {
    return proxies.stream().mapToInt(CuttingProxy::connections).sum();
  }

  /** A handle after it was sent to another process. */
  private static SessionHandle copy(SessionHandle handle) throws IOException, ClassNotFoundException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(handle);
    SessionHandle copy = (SessionHandle) new ObjectInputStream(
        new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertEquals(handle, copy);
    return copy;
  }

  @Override
  public void close() throws IOException {
    session.close();
    for (CuttingProxy proxy : proxies) {
      proxy.close();
    }
    owner.close();
  }
}
