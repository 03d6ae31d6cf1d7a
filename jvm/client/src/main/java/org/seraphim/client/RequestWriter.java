package org.seraphim.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** Writes requests to a channel. */
final class RequestWriter {
  private RequestWriter() {}

  /** Bytes of a request, with any number. */
  static int size(Frame frame) {
    return FrameCodec.size(frame, frame.metaFor(Long.MAX_VALUE).length);
  }

  /** Encodes a request before it has a number, as far as that is possible. */
  static void prepare(Frame frame, ByteBuffer bytes) {
    if (frame.json == null) {
      FrameCodec.encode(frame, 0, frame.meta, true, bytes);
    }
  }

  /** Writes a request that {@link #prepare} has encoded, or that is not encoded yet. */
  static void write(SocketChannel to, PendingRequest request, ByteBuffer bytes) {
    if (bytes.position() == 0) {
      FrameCodec.encode(request.frame, request.number, request.frame.metaFor(request.number), true, bytes);
    } else {
      FrameCodec.setNumber(bytes, request.number);
    }
    request.isSent = true;
    try {
      bytes.flip();
      while (bytes.hasRemaining()) {
        to.write(bytes);
      }
    } catch (IOException e) {
      // The thread that reads finds the channel closed, and connects again.
      Channels.close(to);
    }
  }
}
