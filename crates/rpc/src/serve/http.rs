//! The two HTTP requests that a process answers: `/metrics` and `/health`.

use super::accept::Acceptor;
use super::socket::Socket;
use crate::metrics::{METRICS_TYPE, Metrics};

/// The first bytes of an HTTP request.
pub(super) const GET: &[u8] = b"GET ";

/// Most bytes of a request.
const REQUEST_BYTES: usize = 8 << 10;

/// Answers one request, whose first bytes have been read.
pub(super) async fn answer(
    acceptor: &Acceptor,
    socket: &mut Socket,
    mut request: Vec<u8>,
) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_BYTES {
            return respond(socket, "431 Request Header Fields Too Large", "").await;
        }
        match socket.read(&mut buffer).await? {
            0 => return Ok(()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    let path = request[GET.len()..].split(|byte| matches!(byte, b' ' | b'?' | b'\r')).next();
    match path.unwrap_or_default() {
        b"/metrics" => match metrics(acceptor).await {
            Ok(text) => respond_as(METRICS_TYPE, socket, "200 OK", &text).await,
            Err(text) => respond(socket, "503 Service Unavailable", &(text + "\n")).await,
        },
        b"/health" => match acceptor.lanes.check().await {
            Ok(()) => respond(socket, "200 OK", "ok\n").await,
            Err(text) => respond(socket, "503 Service Unavailable", &(text + "\n")).await,
        },
        _ => respond(socket, "404 Not Found", "there are /metrics and /health\n").await,
    }
}

/// The metrics of the connections and of all lanes; the error names a lane that did not answer.
async fn metrics(acceptor: &Acceptor) -> Result<String, String> {
    let mut metrics = Metrics::default();
    acceptor.shared.counters.metrics(&mut metrics);
    metrics.merge(acceptor.lanes.metrics().await?);
    Ok(metrics.text())
}

async fn respond(socket: &mut Socket, status: &str, text: &str) -> std::io::Result<()> {
    respond_as("text/plain; charset=utf-8", socket, status, text).await
}

async fn respond_as(kind: &str, socket: &mut Socket, status: &str, text: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(text.as_bytes()).await
}
