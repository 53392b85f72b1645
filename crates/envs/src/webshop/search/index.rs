//! An inverted index with BM25 as Lucene 9 computes it: k1 = 0.9, b = 0.4, scores in `f32`, lengths kept in one byte.
//!
//! The postings of a term are one byte string of variable-length integers (distance to the previous document, number of
//! occurrences), about two bytes a posting, so that a million products fit.

use std::collections::HashMap;

use super::analyze;

const K1: f32 = 0.9;
const B: f32 = 0.4;

/// A document that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Number of the document, in the order of insertion.
    pub doc: usize,
    /// Its score; above 0.
    pub score: f32,
}

/// The documents that contain a term.
#[derive(Clone, Debug, Default)]
struct Postings {
    bytes: Vec<u8>,
    /// Documents.
    df: u32,
    /// The last document added.
    last: u32,
}

/// An inverted index. Documents are added in order and cannot be removed.
#[derive(Clone, Debug, Default)]
pub struct Index {
    terms: HashMap<String, u32>,
    postings: Vec<Postings>,
    /// Terms per document before the lossy coding.
    lengths: Vec<u32>,
    total_terms: u64,
    /// Documents with at least one term.
    with_terms: usize,
}

impl Index {
    /// An index of these texts.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut index = Self::default();
        for text in texts {
            index.add(text.as_ref());
        }
        index.shrink();
        index
    }

    /// Adds a document and returns its number.
    ///
    /// # Panics
    /// Beyond 4 billion documents.
    pub fn add(&mut self, text: &str) -> usize {
        let doc = self.lengths.len();
        let id = u32::try_from(doc).expect("fewer than 4 billion documents");
        let mut terms = analyze(text);
        let length = terms.len();
        self.lengths.push(u32::try_from(length).unwrap_or(u32::MAX));
        self.total_terms += length as u64;
        self.with_terms += usize::from(length > 0);
        terms.sort_unstable();
        let mut terms = terms.into_iter().peekable();
        while let Some(term) = terms.next() {
            let mut tf = 1;
            while terms.next_if_eq(&term).is_some() {
                tf += 1;
            }
            let next = self.postings.len() as u32;
            let number = *self.terms.entry(term).or_insert(next);
            if number == next {
                self.postings.push(Postings::default());
            }
            let list = &mut self.postings[number as usize];
            write(&mut list.bytes, id - list.last);
            write(&mut list.bytes, tf);
            list.last = id;
            list.df += 1;
        }
        doc
    }

    /// Gives back memory that was held for growth.
    pub fn shrink(&mut self) {
        self.postings.iter_mut().for_each(|list| list.bytes.shrink_to_fit());
        self.postings.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Number of terms in a document; 0 for one that does not exist.
    #[must_use]
    pub fn document_length(&self, doc: usize) -> usize {
        self.lengths.get(doc).map_or(0, |&length| length as usize)
    }

    /// Number of different terms.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.terms.len()
    }

    /// Bytes held: postings, lengths and vocabulary.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let postings: usize = self.postings.iter().map(|list| list.bytes.capacity()).sum();
        let words: usize = self.terms.keys().map(String::capacity).sum();
        let table = self.terms.capacity() * (size_of::<(String, u32)>() + 1);
        postings + words + table + self.postings.capacity() * size_of::<Postings>() + self.lengths.capacity() * 4
    }

    /// The best `k` documents: highest score first, equal scores in the order of `name`. A document that contains none
    /// of the query's terms is not among them.
    pub fn search<'a>(&self, query: &str, k: usize, name: impl Fn(usize) -> &'a str) -> Vec<Hit> {
        // Repeated terms weigh as often as they occur; the order is that of first occurrence.
        let mut counted: Vec<(u32, u32)> = Vec::new();
        let mut places = HashMap::new();
        for term in analyze(query) {
            let Some(&number) = self.terms.get(&term) else { continue };
            let place = *places.entry(number).or_insert(counted.len());
            match counted.get_mut(place) {
                Some((_, count)) => *count += 1,
                None => counted.push((number, 1)),
            }
        }
        let scores = self.scores(&counted);
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .map(|(doc, score)| Hit { doc, score: score as f32 })
            .collect();
        let better = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then_with(|| name(a.doc).cmp(name(b.doc)));
        if hits.len() > k {
            if k == 0 {
                return Vec::new();
            }
            hits.select_nth_unstable_by(k - 1, better);
            hits.truncate(k);
        }
        hits.sort_by(better);
        hits
    }

    /// The score of every document.
    fn scores(&self, query: &[(u32, u32)]) -> Vec<f64> {
        if query.is_empty() {
            return Vec::new();
        }
        let n = self.with_terms;
        let average = (self.total_terms as f64 / n as f64) as f32;
        // As in Lucene the factor of the length is a table over its byte.
        let factors: Vec<f32> =
            (0..=u8::MAX).map(|byte| 1.0 / (K1 * ((1.0 - B) + B * decode_length(byte) as f32 / average))).collect();
        let mut scores = vec![0.0f64; self.lengths.len()];
        for &(term, count) in query {
            let list = &self.postings[term as usize];
            let df = f64::from(list.df);
            let idf = (1.0 + (n as f64 - df + 0.5) / (df + 0.5)).ln() as f32;
            let weight = count as f32 * idf;
            let mut bytes = list.bytes.as_slice();
            let mut doc = 0;
            while let (Some(step), Some(tf)) = (read(&mut bytes), read(&mut bytes)) {
                doc += step as usize;
                let factor = factors[usize::from(encode_length(self.lengths[doc]))];
                scores[doc] += f64::from(weight - weight / (1.0 + tf as f32 * factor));
            }
        }
        scores
    }
}

/// A length after it was kept in one byte: exact below 40, then four significant bits.
#[must_use]
pub fn lossy_length(length: u32) -> u32 {
    decode_length(encode_length(length))
}

/// Lengths below this are their own byte.
const PLAIN: u32 = 24;

fn encode_length(length: u32) -> u8 {
    if length < PLAIN {
        return length as u8;
    }
    let rest = length - PLAIN;
    let bits = u32::BITS - rest.leading_zeros();
    let code = if bits < 4 {
        rest
    } else {
        // Three bits behind the leading one, which is implied by the exponent.
        let shift = bits - 4;
        ((rest >> shift) & 7) | ((shift + 1) << 3)
    };
    (PLAIN + code).min(255) as u8
}

fn decode_length(byte: u8) -> u32 {
    let byte = u32::from(byte);
    if byte < PLAIN {
        return byte;
    }
    let code = byte - PLAIN;
    let (exponent, mantissa) = (code >> 3, code & 7);
    let rest = match exponent.checked_sub(1) {
        None => mantissa,
        Some(shift) => u32::try_from(u64::from(mantissa | 8) << shift).unwrap_or(u32::MAX - PLAIN),
    };
    PLAIN.saturating_add(rest)
}

fn write(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["B", "A", "D", "C"];

    fn search(texts: &[&str], query: &str, k: usize) -> Vec<(usize, f32)> {
        Index::new(texts).search(query, k, |doc| NAMES[doc]).into_iter().map(|hit| (hit.doc, hit.score)).collect()
    }

    #[test]
    fn scores_by_hand() {
        // N = 2, df = 1: idf = ln 2; length 2, average 1.5; tf = 1.
        let got = search(&["red cup", "cup"], "red", 10);
        let weight = 2f64.ln();
        let factor = 1.0 / (0.9 * (0.6 + 0.4 * 2.0 / 1.5));
        assert_eq!(got.len(), 1);
        assert!((f64::from(got[0].1) - (weight - weight / (1.0 + factor))).abs() < 1e-6, "{got:?}");
        // A word asked for twice weighs twice.
        assert!((search(&["red cup", "cup"], "red red", 10)[0].1 / got[0].1 - 2.0).abs() < 1e-6);
    }

    #[test]
    fn ties_go_by_name_and_nothing_matches_nothing() {
        let texts = ["cup", "cup", "cup", "lamp"];
        assert_eq!(search(&texts, "cups", 10).iter().map(|hit| hit.0).collect::<Vec<_>>(), [1, 0, 2]);
        assert_eq!(search(&texts, "cups", 2).iter().map(|hit| hit.0).collect::<Vec<_>>(), [1, 0]);
        for query in ["", "the", "table", "\0"] {
            assert!(search(&texts, query, 10).is_empty());
        }
        assert!(search(&texts, "cup", 0).is_empty() && search(&[], "cup", 5).is_empty());
        assert!(search(&["", "the"], "cup", 5).is_empty());
    }

    #[test]
    fn lengths_lose_digits() {
        assert!((0..40).all(|length| lossy_length(length) == length));
        for (length, kept) in
            [(40, 40), (41, 40), (42, 42), (55, 54), (56, 56), (59, 56), (60, 60), (108, 104), (1919, 1816)]
        {
            assert_eq!(lossy_length(length), kept, "{length}");
        }
        assert!(lossy_length(1 << 20) <= 1 << 20 && lossy_length(u32::MAX) > 1 << 20);
        // Never decreasing.
        assert!((0..5000).all(|length| lossy_length(length) <= lossy_length(length + 1)));
    }

    #[test]
    fn numbers_survive_the_byte_string() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX] {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            assert_eq!(read(&mut bytes.as_slice()), Some(value));
        }
        assert_eq!(read(&mut [0x80].as_slice()), None);
    }
}
