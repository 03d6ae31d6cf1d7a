//! The two questions that are answered to HTTP: `/metrics` and `/health`.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::accept::{Acceptor, Incoming};
use super::socket::Socket;

/// How such a request begins.
pub(super) const GET: &[u8] = b"GET ";

/// Most bytes of a request.
const REQUEST_BYTES: usize = 8 << 10;
/// A lane that does not answer for so long is not well.
const LANE_TIME: Duration = Duration::from_secs(2);

/// Answers one request, whose first bytes have come.
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
            Ok(text) => respond(socket, "200 OK", &text).await,
            Err(lane) => respond(socket, "503 Service Unavailable", &unwell(lane)).await,
        },
        b"/health" => match metrics(acceptor).await {
            Ok(_) => respond(socket, "200 OK", "ok\n").await,
            Err(lane) => respond(socket, "503 Service Unavailable", &unwell(lane)).await,
        },
        _ => respond(socket, "404 Not Found", "there are /metrics and /health\n").await,
    }
}

fn unwell(lane: usize) -> String {
    format!("lane {lane} did not answer in {} s\n", LANE_TIME.as_secs())
}

/// Of all lanes, or the one that did not answer.
async fn metrics(acceptor: &Acceptor) -> Result<String, usize> {
    let mut text = String::new();
    acceptor.shared.counters.text(&mut text);
    let mut replies = Vec::new();
    for (lane, sender) in acceptor.lanes.iter().enumerate() {
        let (reply, answered) = oneshot::channel();
        sender.send(Incoming::Metrics(reply)).map_err(|_| lane)?;
        replies.push(answered);
    }
    for (lane, answered) in replies.into_iter().enumerate() {
        let Ok(Ok(of_lane)) = timeout(LANE_TIME, answered).await else { return Err(lane) };
        text.push_str(&of_lane);
    }
    Ok(text)
}

async fn respond(socket: &mut Socket, status: &str, text: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(text.as_bytes()).await
}
