//! The reverse: any environment as an OpenEnv server, which that package's generic client can play.
//!
//! A thread a connection. The endpoints are those of the package's own server in its simulation mode; over plain HTTP,
//! where every request is a session of its own, only a reset makes sense.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, StatusCode};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use crate::{EnvError, EnvSpec, Environment, Split};

/// Longest message that is read, in bytes.
const MAX_MESSAGE: usize = 1 << 20;

/// Makes the environment of a session.
pub type MakeEnv = dyn Fn() -> Result<Box<dyn Environment>, EnvError> + Send + Sync;

/// A listening server.
pub struct Server {
    http: tiny_http::Server,
    offer: Arc<Offer>,
}

struct Offer {
    name: String,
    spec: EnvSpec,
    make: Box<MakeEnv>,
    sessions: AtomicUsize,
    max_sessions: usize,
}

impl Server {
    /// Listens on `address` (port 0: any free one) and offers what `make` makes under `name`.
    ///
    /// # Errors
    /// When the address cannot be had or no environment can be made.
    pub fn bind(address: SocketAddr, name: &str, max_sessions: usize, make: Box<MakeEnv>) -> Result<Self, EnvError> {
        let spec = make()?.spec().clone();
        let http = tiny_http::Server::http(address).map_err(|error| EnvError::Config {
            env_type: name.to_owned(),
            message: format!("cannot listen on {address}: {error}"),
        })?;
        let offer = Offer { name: name.to_owned(), spec, make, sessions: AtomicUsize::new(0), max_sessions };
        Ok(Self { http, offer: Arc::new(offer) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.http.server_addr().to_ip()
    }

    /// Answers until the listener fails.
    ///
    /// # Errors
    /// Those of the listener.
    pub fn run(&self) -> std::io::Result<()> {
        loop {
            let request = self.http.recv()?;
            let offer = Arc::clone(&self.offer);
            // A client that does not read its answer holds up its own thread.
            std::thread::Builder::new().name("openenv".to_owned()).spawn(move || offer.answer(request))?;
        }
    }
}

impl Offer {
    fn answer(&self, mut request: Request) {
        let path = request.url().split('?').next().unwrap_or_default().to_owned();
        let reply = match (request.method(), path.as_str()) {
            (Method::Get, "/ws") => return self.upgrade(request),
            (Method::Get, "/health") => Ok(json!({ "status": "healthy" })),
            (Method::Get, "/metadata") => Ok(self.metadata()),
            (Method::Get, "/schema") => Ok(self.schema()),
            (Method::Get, "/state") => Ok(json!({ "episode_id": null, "step_count": 0 })),
            (Method::Post, "/reset") => self.reset_once(&mut request),
            (Method::Post, "/step") => {
                Err((400, "a request over HTTP is a session of its own: step over /ws".to_owned()))
            }
            _ => Err((404, format!("no such endpoint as {path}"))),
        };
        let (status, body) = match reply {
            Ok(body) => (200, body),
            Err((status, detail)) => (status, json!({ "detail": detail })),
        };
        let mut response = Response::from_string(body.to_string()).with_status_code(StatusCode(status));
        if let Ok(header) = Header::from_bytes("Content-Type", "application/json") {
            response = response.with_header(header);
        }
        // A client that has gone away needs no answer.
        let _ = request.respond(response);
    }

    fn metadata(&self) -> Value {
        json!({
            "name": self.name, "description": self.spec.instruction, "readme_content": null,
            "version": env!("CARGO_PKG_VERSION"), "author": null, "documentation_url": null,
        })
    }

    fn schema(&self) -> Value {
        let metadata = json!({ "type": "object", "additionalProperties": true, "title": "Metadata" });
        let mut action = json!({ "type": "string", "title": "Action", "description": "What to do" });
        if !self.spec.actions.is_empty() {
            action["enum"] = json!(self.spec.actions);
        }
        let flag = |about: &str| json!({ "type": "boolean", "default": false, "description": about });
        let observation = json!({
            "type": "object", "title": "RagenObservation", "additionalProperties": false,
            "properties": {
                "done": flag("The episode is over"),
                "reward": { "anyOf": [{ "type": "number" }, { "type": "null" }], "default": null },
                "metadata": metadata,
                "text": { "type": "string", "description": "The state" },
                "available_actions": { "type": "array", "items": { "type": "string" } },
                "success": flag("The goal is reached"),
                "truncated": flag("A step limit ended the episode"),
                "action_is_valid": flag("The action was understood"),
                "action_is_effective": flag("The action changed the state"),
                "state_key": { "type": "string", "description": "Equal for equal states" },
            },
        });
        json!({
            "action": {
                "type": "object", "title": "RagenAction", "additionalProperties": false,
                "properties": { "metadata": metadata, "action": action }, "required": ["action"],
            },
            "observation": observation,
            "reset_observation": observation,
            "state": {
                "type": "object", "title": "State",
                "properties": { "episode_id": { "type": ["string", "null"] }, "step_count": { "type": "integer" } },
            },
        })
    }

    fn reset_once(&self, request: &mut Request) -> Result<Value, (u16, String)> {
        let mut body = String::new();
        let read = request.as_reader().take(MAX_MESSAGE as u64).read_to_string(&mut body);
        read.map_err(|error| (400, error.to_string()))?;
        let data = if body.trim().is_empty() {
            json!({})
        } else {
            serde_json::from_str(&body).map_err(|error| (422, error.to_string()))?
        };
        let mut session = Session::new(self).map_err(|error| (500, error))?;
        session.reset(&data).map_err(|error| (500, error))
    }

    fn upgrade(&self, request: Request) {
        let key = request.headers().iter().find(|header| header.field.equiv("Sec-WebSocket-Key"));
        let Some(key) = key.map(|header| derive_accept_key(header.value.as_bytes())) else {
            let _ = request.respond(Response::from_string("expected a WebSocket").with_status_code(StatusCode(426)));
            return;
        };
        let mut response = Response::empty(101);
        if let Ok(header) = Header::from_bytes("Sec-WebSocket-Accept", key) {
            response = response.with_header(header);
        }
        let stream = request.upgrade("websocket", response);
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        self.play(&mut WebSocket::from_raw_socket(stream, Role::Server, Some(config)));
    }

    fn play<S: Read + Write>(&self, socket: &mut WebSocket<S>) {
        let place = Place::take(self);
        let mut session = match &place {
            Some(_) => Session::new(self),
            None => {
                let message = format!("all {} sessions are taken", self.max_sessions);
                let _ = socket.send(Message::text(error("CAPACITY_REACHED", &message).to_string()));
                let _ = socket.close(None);
                // Whatever the client has already sent is read: closing before would take the message back.
                while socket.read().is_ok() {}
                return;
            }
        };
        loop {
            let text = match socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Close(_)) | Err(_) => return,
                Ok(_) => continue,
            };
            let answer = match (&mut session, serde_json::from_str::<Value>(&text)) {
                (_, Err(why)) => error("INVALID_JSON", &format!("Invalid JSON: {why}")),
                (Err(why), _) => error("FACTORY_ERROR", why),
                (Ok(_), Ok(message)) if message["type"] == "close" => {
                    let _ = socket.close(None);
                    let _ = socket.flush();
                    return;
                }
                (Ok(session), Ok(message)) => catch_unwind(AssertUnwindSafe(|| session.answer(&message)))
                    .unwrap_or_else(|_| error("EXECUTION_ERROR", "the environment panicked")),
            };
            if socket.send(Message::text(answer.to_string())).is_err() {
                return;
            }
        }
    }
}

/// A session's share of the places there are.
struct Place<'a>(&'a Offer);

impl<'a> Place<'a> {
    fn take(offer: &'a Offer) -> Option<Self> {
        let place = Place(offer);
        (offer.sessions.fetch_add(1, Ordering::SeqCst) < offer.max_sessions).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One client's environment.
struct Session {
    env: Box<dyn Environment>,
    episode_id: Value,
    steps: usize,
}

impl Session {
    fn new(offer: &Offer) -> Result<Self, String> {
        let env = catch_unwind(AssertUnwindSafe(|| (offer.make)()));
        let env = env.map_err(|_| "the environment panicked".to_owned())?.map_err(|error| error.to_string())?;
        Ok(Self { env, episode_id: Value::Null, steps: 0 })
    }

    fn answer(&mut self, message: &Value) -> Value {
        let data = &message["data"];
        let result = match message["type"].as_str() {
            Some("reset") => self.reset(data),
            Some("step") => match data["action"].as_str() {
                Some(action) if self.knows(action) => self.step(action),
                _ => {
                    return error(
                        "VALIDATION_ERROR",
                        &format!("expected `action`, one of {:?}", self.env.action_lookup()),
                    );
                }
            },
            Some("state") => {
                let state = json!({ "episode_id": self.episode_id, "step_count": self.steps });
                return json!({ "type": "state", "data": state });
            }
            other => return error("UNKNOWN_TYPE", &format!("Unknown message type: {}", other.unwrap_or_default())),
        };
        match result {
            Ok(data) => json!({ "type": "observation", "data": data }),
            Err(message) => error("EXECUTION_ERROR", &message),
        }
    }

    fn knows(&self, action: &str) -> bool {
        let known = self.env.action_lookup();
        known.is_empty() || known.iter().any(|name| name.to_lowercase() == action.trim().to_lowercase())
    }

    fn reset(&mut self, data: &Value) -> Result<Value, String> {
        let split = match data["split"].as_str() {
            None | Some("train") => Split::Train,
            Some("val") => Split::Val,
            Some(other) => return Err(format!("expected `train` or `val` as split, found `{other}`")),
        };
        // Without a seed, the episode's number is one.
        let seed = data["seed"].as_u64().unwrap_or(0);
        let text = self.env.reset(seed, split).map_err(|error| error.to_string())?;
        (self.episode_id, self.steps) = (data["episode_id"].clone(), 0);
        let observation = json!({
            "text": text, "available_actions": self.env.available_actions(), "success": false, "truncated": false,
            "action_is_valid": true, "action_is_effective": false, "state_key": self.env.state_key(), "metadata": {},
        });
        Ok(json!({ "observation": observation, "reward": null, "done": false }))
    }

    fn step(&mut self, action: &str) -> Result<Value, String> {
        let step = self.env.step(action).map_err(|error| error.to_string())?;
        self.steps += 1;
        let observation = json!({
            "text": step.observation, "available_actions": self.env.available_actions(), "success": step.info.success,
            "truncated": step.truncated, "action_is_valid": step.info.action_is_valid,
            "action_is_effective": step.info.action_is_effective, "state_key": self.env.state_key(),
            "metadata": step.info.extra,
        });
        Ok(json!({ "observation": observation, "reward": step.reward, "done": step.terminated || step.truncated }))
    }
}

fn error(code: &str, message: &str) -> Value {
    json!({ "type": "error", "data": { "message": message, "code": code } })
}
