//! The retriever behind HTTP, by the protocol of RAGEN's retrieval server: `POST /retrieve` with `query` and `top_k`
//! answers `results`, each with `id`, `content` and `score`; `GET /health` tells that it is up.

use std::time::Duration;

use serde_json::{Value, json};

use super::retriever::{Document, Hit, Retriever};
use crate::dataset::kind;
use crate::http::Client;

/// Most documents that the server is asked for.
const MAX_TOP_K: usize = 50;

/// A retrieval server.
pub struct HttpRetriever {
    client: Client,
}

impl HttpRetriever {
    /// Connects to the server at `url` (scheme, host and port) and asks whether it is up.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn connect(url: &str, timeout: Duration) -> Result<Self, String> {
        let client = Client::new(url, timeout, None)?;
        client.expect_up().map_err(|error| format!("the retrieval server is not up: {error}"))?;
        Ok(Self { client })
    }
}

impl Retriever for HttpRetriever {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Hit>, String> {
        let answer = self.client.post("/retrieve", &json!({ "query": query, "top_k": k.min(MAX_TOP_K) }))?;
        let Some(results) = answer.get("results").and_then(Value::as_array) else {
            return Err(format!("expected a list `results` from the retrieval server, found {}", kind(&answer)));
        };
        results.iter().take(k).map(hit).collect()
    }
}

fn hit(result: &Value) -> Result<Hit, String> {
    let id = match result.get("id") {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        other => return Err(format!("`id`: expected text or a number, found {}", other.map_or("nothing", kind))),
    };
    let content = match result.get("content") {
        Some(Value::String(content)) => content.clone(),
        other => return Err(format!("`content`: expected text, found {}", other.map_or("nothing", kind))),
    };
    let score = result.get("score").and_then(Value::as_f64).unwrap_or_default();
    Ok(Hit { document: Document { id, content }, score })
}
