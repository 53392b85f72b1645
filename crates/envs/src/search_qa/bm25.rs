//! BM25 over documents in memory (Robertson and Zaragoza 2009, with Lucene's inverse document frequency, which is never
//! negative).

use std::collections::HashMap;

use super::retriever::{Document, Hit};

/// Saturation of a word's frequency in a document.
const K1: f64 = 1.2;
/// How much a document's length counts.
const B: f64 = 0.75;

/// An index of documents.
#[derive(Debug)]
pub struct Bm25 {
    documents: Vec<Document>,
    /// Words in each document.
    lengths: Vec<f64>,
    mean_length: f64,
    /// Documents with a word and how often it occurs in each, in the order of the documents.
    postings: HashMap<String, Vec<(u32, u32)>>,
}

impl Bm25 {
    /// Indexes the documents, at most 2³² of them.
    #[must_use]
    pub fn new(documents: Vec<Document>) -> Self {
        let mut postings: HashMap<String, Vec<(u32, u32)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(documents.len());
        for (i, document) in (0u32..).zip(&documents) {
            let mut length = 0.0;
            for word in words(&document.content) {
                length += 1.0;
                let list = postings.entry(word).or_default();
                match list.last_mut() {
                    Some((last, count)) if *last == i => *count += 1,
                    _ => list.push((i, 1)),
                }
            }
            lengths.push(length);
        }
        let mean_length = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        Self { documents, lengths, mean_length, postings }
    }

    /// The best `k` documents that share a word with the query, best first; equal scores in the order of the documents.
    #[must_use]
    pub fn search(&self, query: &str, k: usize) -> Vec<Hit> {
        let total = self.documents.len() as f64;
        let mut scores: HashMap<u32, f64> = HashMap::new();
        for word in words(query) {
            let Some(list) = self.postings.get(&word) else { continue };
            let with = list.len() as f64;
            let idf = (1.0 + (total - with + 0.5) / (with + 0.5)).ln();
            for &(i, count) in list {
                let (count, length) = (f64::from(count), self.lengths[i as usize]);
                let norm = K1 * (1.0 - B + B * length / self.mean_length.max(f64::MIN_POSITIVE));
                *scores.entry(i).or_default() += idf * count * (K1 + 1.0) / (count + norm);
            }
        }
        let mut ranked: Vec<(u32, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
            .into_iter()
            .take(k)
            .map(|(i, score)| Hit { document: self.documents[i as usize].clone(), score })
            .collect()
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }
}

/// Runs of letters and digits in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[&str]) -> Bm25 {
        let document = |(i, text): (usize, &&str)| Document { id: i.to_string(), content: (*text).to_owned() };
        Bm25::new(texts.iter().enumerate().map(document).collect())
    }

    #[test]
    fn scores_by_hand() {
        let found = index(&["cat dog", "cat cat", "bird"]).search("Cat!", 9);
        // Three documents of 2, 2 and 1 words, mean 5/3; two have the word: idf = ln(1 + 1.5 / 2.5).
        let idf = 1.6f64.ln();
        let norm = 1.2 * (0.25 + 0.75 * 2.0 / (5.0 / 3.0));
        let expected = [("1", idf * 2.0 * 2.2 / (2.0 + norm)), ("0", idf * 2.2 / (1.0 + norm))];
        assert_eq!(found.len(), 2);
        for (hit, (id, score)) in found.iter().zip(expected) {
            assert_eq!(hit.document.id, id);
            assert!((hit.score - score).abs() < 1e-12, "{hit:?}");
        }
    }

    #[test]
    fn ties_keep_the_order_and_nothing_is_found_for_nothing() {
        let index = index(&["x y", "x z", "x y"]);
        let ids: Vec<String> = index.search("x", 2).into_iter().map(|hit| hit.document.id).collect();
        assert_eq!(ids, ["0", "1"]);
        assert!(index.search("", 5).is_empty() && index.search("?!", 5).is_empty() && index.search("q", 5).is_empty());
        assert!(Bm25::new(Vec::new()).search("x", 5).is_empty());
    }
}
