//! Training a small byte-level BPE tokenizer for models that are made from scratch on text worlds.
//!
//! What is here: byte-pair merges by frequency (Sennrich et al. 2016) inside lower-case words only, so that every grid
//! symbol, digit, capital letter and line end stays a token of its own and a board never changes its number of tokens.
//! What is not here: the tokenizers of pretrained models.
//!
//! Words are counted in sorted order and ties go to the smallest pair, so the result depends on the texts only.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use crate::tokenizer::{Tokenizer, TokenizerError, TokenizerMeta, byte_of};

/// ChatML without a default system message.
pub const CHATML_TEMPLATE: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Lower-case words, with an optional capital and an optional space before, may merge; any other character stands alone.
const PATTERN: &str = r" ?[A-Z]?[a-z]+|[\s\S]";

/// What to train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpeOptions {
    /// Number of tokens to end with: special and added tokens, 256 bytes, merges. Fewer when the texts run out of pairs.
    pub vocab_size: usize,
    /// Control tokens, which take the first ids. Must hold the ChatML tokens.
    pub special_tokens: Vec<String>,
    /// Tokens that are matched whole but are content, such as `<think>`.
    pub added_tokens: Vec<String>,
    /// Characters that take more than one byte and become one token whatever the texts hold.
    pub characters: Vec<char>,
    /// A pair must occur this often to merge.
    pub min_frequency: u64,
}

impl Default for BpeOptions {
    fn default() -> Self {
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect();
        Self {
            vocab_size: 1024,
            special_tokens: strings(&["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
            added_tokens: strings(&["<think>", "</think>", "<answer>", "</answer>", " || "]),
            characters: vec!['√'],
            min_frequency: 2,
        }
    }
}

/// Trains a tokenizer on texts.
///
/// # Errors
/// [`TokenizerError::Train`] when the options contradict each other or leave no room for the bytes.
pub fn train<S: AsRef<str>>(
    texts: impl IntoIterator<Item = S>,
    options: &BpeOptions,
) -> Result<Tokenizer, TokenizerError> {
    let base = Base::new(options)?;
    let untrained = base.tokenizer(&[])?;
    let words = count_words(texts, &untrained, base.first_byte)?;

    let mut merger = Merger::new(base.symbols.clone(), words);
    for c in &options.characters {
        merger.force(*c, &untrained)?;
    }
    if merger.symbols.len() > options.vocab_size {
        return Err(TokenizerError::Train(format!(
            "vocab_size {} is too small: special and added tokens, bytes and characters take {}",
            options.vocab_size,
            merger.symbols.len()
        )));
    }
    while merger.symbols.len() < options.vocab_size && merger.step(options.min_frequency) {}
    base.tokenizer(&merger.merges.iter().map(|(a, b, _)| (merger.text(*a), merger.text(*b))).collect::<Vec<_>>())
}

/// The part of the vocabulary that needs no training.
struct Base<'a> {
    options: &'a BpeOptions,
    /// Special tokens, added tokens, bytes; the index is the id.
    symbols: Vec<String>,
    first_byte: u32,
}

impl<'a> Base<'a> {
    fn new(options: &'a BpeOptions) -> Result<Self, TokenizerError> {
        let bad = |what: String| Err(TokenizerError::Train(what));
        for needed in ["<|im_start|>", "<|im_end|>", "<|endoftext|>"] {
            if !options.special_tokens.iter().any(|t| t == needed) {
                return bad(format!("special_tokens must hold `{needed}`"));
            }
        }
        let mut symbols: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for token in options.special_tokens.iter().chain(&options.added_tokens) {
            if token.chars().count() < 2 {
                return bad(format!("token {token:?} is too short: single characters are tokens already"));
            }
            if !seen.insert(token) {
                return bad(format!("token `{token}` is given twice"));
            }
            symbols.push(token.clone());
        }
        let first_byte = symbols.len() as u32;
        let mut bytes: Vec<(u8, char)> =
            (0u32..512).filter_map(char::from_u32).filter_map(|c| byte_of(c).map(|b| (b, c))).collect();
        bytes.sort_unstable();
        symbols.extend(bytes.into_iter().map(|(_, c)| c.to_string()));
        Ok(Self { options, symbols, first_byte })
    }

    fn tokenizer(&self, merges: &[(&str, &str)]) -> Result<Tokenizer, TokenizerError> {
        let mut vocab = Map::new();
        let merged = merges.iter().map(|(a, b)| format!("{a}{b}"));
        for symbol in self.symbols.iter().cloned().chain(merged) {
            let id = vocab.len();
            vocab.entry(symbol).or_insert_with(|| json!(id));
        }
        let specials = self.options.special_tokens.len();
        let added: Vec<Value> = self.symbols[..self.first_byte as usize]
            .iter()
            .enumerate()
            .map(|(id, content)| {
                json!({
                    "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": id < specials,
                })
            })
            .collect();
        let json = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            ]},
            "post_processor": null,
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                "vocab": vocab,
                "merges": merges.iter().map(|(a, b)| json!([a, b])).collect::<Vec<_>>(),
            },
        });
        let meta = TokenizerMeta {
            chat_template: Some(CHATML_TEMPLATE.to_string()),
            bos: None,
            eos: Some("<|im_end|>".into()),
            pad: Some("<|endoftext|>".into()),
            unk: None,
        };
        Tokenizer::from_json(json, meta, "trained tokenizer")
    }
}

/// Pre-tokenized words as byte tokens, with their counts. Added tokens are not words.
fn count_words<S: AsRef<str>>(
    texts: impl IntoIterator<Item = S>,
    untrained: &Tokenizer,
    first_byte: u32,
) -> Result<BTreeMap<Vec<u32>, u64>, TokenizerError> {
    let mut words: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for text in texts {
        for word in untrained.encode_words(text.as_ref())? {
            if word.len() > 1 && word.iter().all(|id| *id >= first_byte) {
                *words.entry(word).or_default() += 1;
            }
        }
    }
    Ok(words)
}

struct Merger {
    symbols: Vec<String>,
    ids: HashMap<String, u32>,
    /// Left, right, result, in the order of their rank.
    merges: Vec<(u32, u32, u32)>,
    words: Vec<(Vec<u32>, u64)>,
}

impl Merger {
    fn new(symbols: Vec<String>, words: BTreeMap<Vec<u32>, u64>) -> Self {
        let ids = symbols.iter().enumerate().map(|(id, s)| (s.clone(), id as u32)).collect();
        Self { symbols, ids, merges: Vec::new(), words: words.into_iter().collect() }
    }

    fn text(&self, id: u32) -> &str {
        self.symbols.get(id as usize).map_or("", String::as_str)
    }

    /// Merges the bytes of a character from the left, whatever its frequency.
    fn force(&mut self, c: char, untrained: &Tokenizer) -> Result<(), TokenizerError> {
        let ids = untrained.encode(&c.to_string(), false)?;
        let Some((first, rest)) = ids.split_first() else { return Ok(()) };
        let mut left = *first;
        for right in rest {
            left = match self.merges.iter().find(|(a, b, _)| (*a, *b) == (left, *right)) {
                Some((_, _, known)) => *known,
                None => self.merge(left, *right),
            };
        }
        Ok(())
    }

    /// Merges the most frequent pair; false when no pair is frequent enough.
    fn step(&mut self, min_frequency: u64) -> bool {
        let mut counts: HashMap<(u32, u32), u64> = HashMap::new();
        for (word, count) in &self.words {
            for pair in word.windows(2) {
                *counts.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        let best = counts
            .into_iter()
            .filter(|(_, count)| *count >= min_frequency.max(1))
            // Frequent first, then the smallest pair: the map's order must not matter.
            .max_by_key(|(pair, count)| (*count, std::cmp::Reverse(*pair)));
        match best {
            Some(((a, b), _)) => {
                self.merge(a, b);
                true
            }
            None => false,
        }
    }

    /// Adds a merge. Two pairs may spell the same text: they then share one token.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        let text = format!("{}{}", self.text(a), self.text(b));
        let new = match self.ids.get(&text) {
            Some(id) => *id,
            None => {
                let id = self.symbols.len() as u32;
                self.symbols.push(text.clone());
                self.ids.insert(text, id);
                id
            }
        };
        self.merges.push((a, b, new));
        for (word, _) in &mut self.words {
            let mut i = 0;
            while i + 1 < word.len() {
                if word[i] == a && word[i + 1] == b {
                    word[i] = new;
                    word.remove(i + 1);
                }
                i += 1;
            }
        }
        new
    }
}
