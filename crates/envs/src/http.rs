//! A small blocking HTTP client for JSON services on this or a nearby machine.
//!
//! Plain HTTP only: the services that environments use (retrieval, proof checking) run beside the training. A service
//! that cannot be reached or is overloaded is asked again a few times.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// Attempts at a request.
const ATTEMPTS: u32 = 3;
/// Pause before the second attempt; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Bytes that an answer may have.
const MAX_BYTES: u64 = 64 << 20;

/// Services that have said in this process that they are up; asking once is enough.
static HEALTHY: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A service at an address.
pub(crate) struct Client {
    agent: ureq::Agent,
    base: String,
    /// Bearer token that the service asks for.
    key: Option<String>,
}

impl Client {
    /// A client of the service at `base`, e.g. `http://127.0.0.1:8000`, that waits `timeout` for an answer.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn new(base: &str, timeout: Duration, key: Option<String>) -> Result<Self, String> {
        let base = base.trim_end_matches('/').to_owned();
        let host = match base.split_once("://") {
            Some(("http", host)) if !host.is_empty() => host,
            Some(("https", _)) => {
                return Err(format!(
                    "expected a plain http:// address, found {base}; put a local proxy in front of it"
                ));
            }
            _ => return Err(format!("expected an address such as http://127.0.0.1:8000, found {base:?}")),
        };
        let mut config = ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
        if host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]") {
            // A proxy could not reach what listens on this machine.
            config = config.proxy(None);
        }
        Ok(Self { agent: config.build().into(), base, key })
    }

    /// Asks whether the service is up (`GET /health`), unless it has said so before.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub fn expect_up(&self) -> Result<(), String> {
        let mut healthy = HEALTHY.lock().unwrap_or_else(PoisonError::into_inner);
        if !healthy.contains(&self.base) {
            let url = format!("{}/health", self.base);
            self.repeat(&url, || self.authorised(self.agent.get(&url)).call())?;
            healthy.insert(self.base.clone());
        }
        Ok(())
    }

    fn authorised<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    /// Sends a JSON body to `path` and reads the JSON answer.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let url = format!("{}{path}", self.base);
        let bytes = body.to_string();
        let send = || self.authorised(self.agent.post(&url).header("content-type", "application/json")).send(&bytes);
        let answer = self.repeat(&url, send)?;
        serde_json::from_slice(&answer).map_err(|error| format!("{url}: expected JSON: {error}"))
    }

    /// Sends a request until it is answered; an answer that blames the request is final.
    fn repeat(
        &self,
        url: &str,
        send: impl Fn() -> Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Vec<u8>, String> {
        let mut pause = FIRST_PAUSE;
        let mut problem = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(pause);
                pause *= 2;
            }
            match send() {
                Ok(mut response) => {
                    let status = response.status().as_u16();
                    let body = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec();
                    match (status, body) {
                        (200..=299, Ok(body)) => return Ok(body),
                        (_, Err(error)) => problem = format!("{url}: {error}"),
                        (status, Ok(body)) => {
                            let told: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                            problem = format!("{url}: status {status}: {told}");
                            if status < 500 && status != 429 {
                                return Err(problem);
                            }
                        }
                    }
                }
                // A slow service is not made faster by asking again.
                Err(error @ ureq::Error::Timeout(_)) => return Err(format!("{url}: {error}")),
                Err(error) => problem = format!("{url}: {error}"),
            }
        }
        Err(format!("{problem} ({ATTEMPTS} attempts)"))
    }
}
