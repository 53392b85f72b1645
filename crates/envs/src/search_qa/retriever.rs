//! Where documents come from: the contract, and the retriever that always finds the same.

use serde::Deserialize;

/// A passage that can be found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Document {
    /// What tells it from the others.
    pub id: String,
    /// Its text.
    pub content: String,
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The passage.
    pub document: Document,
    /// How well it fits; only the order means something.
    pub score: f64,
}

/// Finds documents.
pub trait Retriever: Send + Sync {
    /// At most `k` documents for a query, best first.
    ///
    /// # Errors
    /// Why nothing could be retrieved, in words.
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Hit>, String>;
}

impl Retriever for super::Bm25 {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Hit>, String> {
        Ok(self.search(query, k))
    }
}

/// Finds the same two documents for every query: for trying out a set-up without documents.
pub struct Mock;

impl Retriever for Mock {
    fn retrieve(&self, query: &str, k: usize) -> Result<Vec<Hit>, String> {
        let hit = |id: &str, score: f64| {
            let content = format!("Placeholder document {id}: nothing is known about \"{query}\".");
            Hit { document: Document { id: id.to_owned(), content }, score }
        };
        Ok([hit("mock_1", 0.9), hit("mock_2", 0.8)].into_iter().take(k).collect())
    }
}
