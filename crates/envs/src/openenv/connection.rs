//! One WebSocket connection, which is one session on the server, with a time limit on every exchange.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket, client::client_with_config};

/// Why an exchange brought no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server takes no more sessions.
    Full,
    /// The server refused: the code and the message.
    Refused(String, String),
    /// The connection is of no use any more.
    Broken(String),
}

/// An open connection.
pub(super) struct Connection {
    socket: WebSocket<Timed>,
    limit: Duration,
}

impl Connection {
    /// Connects to `/ws` below `path` at `authority`.
    pub fn open(authority: &str, path: &str, limit: Duration, max_bytes: usize) -> Result<Self, Failure> {
        let broken = |why: String| Failure::Broken(format!("cannot connect to {authority}: {why}"));
        let deadline = Instant::now() + limit;
        let addresses = authority.to_socket_addrs().map_err(|error| broken(error.to_string()))?;
        let mut last = "the name has no address".to_owned();
        for address in addresses {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let stream = match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => stream,
                Err(error) => {
                    last = error.to_string();
                    continue;
                }
            };
            // Small messages back and forth: nothing is to wait for more.
            stream.set_nodelay(true).map_err(|error| broken(error.to_string()))?;
            let config = WebSocketConfig::default().max_message_size(Some(max_bytes)).max_frame_size(Some(max_bytes));
            let url = format!("ws://{authority}{path}/ws");
            let (socket, _) = client_with_config(url, Timed { stream, deadline }, Some(config))
                .map_err(|error| broken(error.to_string()))?;
            return Ok(Self { socket, limit });
        }
        Err(broken(last))
    }

    /// Sends a message and waits for the answer of this type; returns its data.
    pub fn exchange(&mut self, message: &Value, expected: &str) -> Result<Value, Failure> {
        self.socket.get_mut().deadline = Instant::now() + self.limit;
        let broken = |error: Error, limit: Duration| {
            Failure::Broken(match error {
                Error::Io(io) if io.kind() == ErrorKind::TimedOut => format!("did not answer within {limit:?}"),
                other => other.to_string(),
            })
        };
        let sent = self.socket.send(Message::text(message.to_string()));
        match sent {
            // It may have said why before it closed.
            Ok(()) | Err(Error::ConnectionClosed | Error::Io(_)) => {}
            Err(error) => return Err(broken(error, self.limit)),
        }
        loop {
            let text = match self.socket.read().map_err(|error| broken(error, self.limit))? {
                Message::Text(text) => text,
                Message::Close(_) => return Err(Failure::Broken("closed the connection".to_owned())),
                // Pings are answered by the library when it reads on.
                _ => continue,
            };
            let excerpt = || text.chars().take(200).collect::<String>();
            let mut answer: Value = serde_json::from_str(&text)
                .map_err(|error| Failure::Broken(format!("sent what is no JSON ({error}): {}", excerpt())))?;
            let data = answer["data"].take();
            return match answer["type"].as_str() {
                Some(kind) if kind == expected => Ok(data),
                Some("error") => {
                    let word = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
                    match word("code").as_str() {
                        "CAPACITY_REACHED" => Err(Failure::Full),
                        code => Err(Failure::Refused(code.to_owned(), explain(&data))),
                    }
                }
                _ => Err(Failure::Broken(format!("answered otherwise than with `{expected}`: {}", excerpt()))),
            };
        }
    }

    /// Says good-bye, without waiting.
    pub fn close(mut self) {
        self.socket.get_mut().deadline = Instant::now() + Duration::from_millis(100);
        let _ = self.socket.send(Message::text(r#"{"type":"close"}"#));
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

/// The message of an error, with what a validation found.
fn explain(data: &Value) -> String {
    let mut message = data["message"].as_str().unwrap_or("no message").to_owned();
    if let Some(first) = data["errors"].as_array().and_then(|errors| errors.first()) {
        message.push_str(&format!(": {}", first["msg"].as_str().unwrap_or_default()));
    }
    message.chars().take(2000).collect()
}

/// A stream whose reads and writes end at a deadline, however little comes at a time.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> std::io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(in_time)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(buffer).map_err(in_time)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// Linux says of a stream whose time is over that it would block.
fn in_time(error: std::io::Error) -> std::io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}
