//! Text to token ids and back.
//!
//! What is here: a tokenizer in Hugging Face's `tokenizer.json` form with two ways to encode: one that recognises
//! control tokens, for the literal pieces of a chat template, and one that cannot produce them, for text that comes
//! from an environment, a user or a data set.
//! What is not here: chat templates (`chat`), training (`bpe_train`), the GGUF keys (`tokenizer_gguf`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Added tokens that are content, not control: they may be produced from any text even if a template mentions them.
const CONTENT_TAGS: [&str; 4] = ["<think>", "</think>", "<answer>", "</answer>"];

/// A tokenizer.
#[derive(Clone)]
pub struct Tokenizer {
    /// `tokenizer.json`, as it was read or built; saving writes it back.
    json: Value,
    /// Recognises all added tokens.
    full: tokenizers::Tokenizer,
    /// Does not know the control tokens at all.
    plain: tokenizers::Tokenizer,
    control: BTreeSet<u32>,
    special: HashSet<u32>,
    pieces: HashMap<u32, Piece>,
    ids: HashMap<String, u32>,
    vocab_size: usize,
    chat_template: Option<String>,
    bos: Option<String>,
    eos: Option<String>,
    pad: Option<String>,
    unk: Option<String>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    added: bool,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_size", &self.vocab_size).finish_non_exhaustive()
    }
}

/// Why a tokenizer could not be read, used or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not a usable tokenizer.
    #[error("{origin}: {what}")]
    Invalid {
        /// File or key.
        origin: String,
        /// What was expected and what was found.
        what: String,
    },
    /// Encoding failed.
    #[error("cannot encode text: {0}")]
    Encode(String),
    /// Decoding failed.
    #[error("cannot decode ids: {0}")]
    Decode(String),
    /// Training failed.
    #[error("cannot train a tokenizer: {0}")]
    Train(String),
}

impl TokenizerError {
    pub(crate) fn invalid(origin: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Invalid { origin: origin.into(), what: what.into() }
    }
}

/// Facts about a tokenizer that `tokenizer.json` does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenizerMeta {
    /// Jinja source of the chat template.
    pub chat_template: Option<String>,
    /// Beginning-of-sequence token.
    pub bos: Option<String>,
    /// End-of-sequence token.
    pub eos: Option<String>,
    /// Padding token.
    pub pad: Option<String>,
    /// Token for what cannot be encoded.
    pub unk: Option<String>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`, and beside it, where present, `tokenizer_config.json`, `special_tokens_map.json` and
    /// `chat_template.jinja`.
    ///
    /// # Errors
    /// [`TokenizerError`] when the file is missing or not a tokenizer.
    pub fn from_file(path: &Path) -> Result<Self, TokenizerError> {
        let json =
            read_json(path)?.ok_or_else(|| TokenizerError::invalid(path.display().to_string(), "no such file"))?;
        let dir = path.parent().unwrap_or(Path::new("."));
        Self::from_json(json, read_meta(dir)?, &path.display().to_string())
    }

    /// Reads the tokenizer of a model folder.
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`].
    pub fn from_dir(dir: &Path) -> Result<Self, TokenizerError> {
        Self::from_file(&dir.join("tokenizer.json"))
    }

    /// Builds a tokenizer from the contents of a `tokenizer.json`; `origin` is for messages.
    ///
    /// # Errors
    /// [`TokenizerError::Invalid`].
    pub fn from_json(json: Value, meta: TokenizerMeta, origin: &str) -> Result<Self, TokenizerError> {
        let build = |json: &Value| {
            let text = json.to_string();
            tokenizers::Tokenizer::from_bytes(text.as_bytes())
                .map_err(|e| TokenizerError::invalid(origin, format!("not a tokenizer: {e}")))
        };
        let mut json = json;
        // Batch settings of whoever saved the file: here a text is never cut or padded behind the caller's back.
        if let Some(map) = json.as_object_mut() {
            map.insert("truncation".into(), Value::Null);
            map.insert("padding".into(), Value::Null);
        }
        let full = build(&json)?;
        let added = full.get_added_tokens_decoder();
        let vocab = full.get_vocab(true);
        let vocab_size = vocab.values().max().map_or(0, |id| *id as usize + 1);
        if vocab_size == 0 {
            return Err(TokenizerError::invalid(origin, "the vocabulary is empty"));
        }
        let named: HashSet<&str> =
            [&meta.bos, &meta.eos, &meta.pad, &meta.unk].into_iter().filter_map(|t| t.as_deref()).collect();
        let mut control = BTreeSet::new();
        let mut special = HashSet::new();
        for (id, token) in &added {
            if token.special {
                special.insert(*id);
            }
            if token.special || is_control(&token.content, &named, meta.chat_template.as_deref()) {
                control.insert(*id);
            }
        }
        let control_text: HashSet<&str> =
            added.iter().filter(|(id, _)| control.contains(id)).map(|(_, t)| t.content.as_str()).collect();
        let kept: Vec<(u32, &str)> =
            added.iter().filter(|(id, _)| !control.contains(id)).map(|(id, t)| (*id, t.content.as_str())).collect();
        let plain = build(&without_control(&json, &control_text, &kept))?;
        for (id, content) in &kept {
            if plain.token_to_id(content) != Some(*id) {
                return Err(TokenizerError::invalid(
                    origin,
                    format!("added token `{content}` does not keep its id {id} when control tokens are left out"),
                ));
            }
        }
        let pieces =
            vocab.iter().map(|(text, id)| (*id, Piece { text: text.clone(), added: added.contains_key(id) })).collect();
        Ok(Self {
            json,
            full,
            plain,
            control,
            special,
            pieces,
            ids: vocab,
            vocab_size,
            chat_template: meta.chat_template,
            bos: meta.bos,
            eos: meta.eos,
            pad: meta.pad,
            unk: meta.unk,
        })
    }

    /// Encodes text, without adding anything at its ends.
    ///
    /// With `allow_special` the text may contain control tokens; without, their strings are encoded as the plain text
    /// they are, and no control token can come out. Text that did not come from a template's literal pieces must be
    /// encoded without.
    ///
    /// # Errors
    /// [`TokenizerError::Encode`] when the tokenizer cannot represent the text (byte-level ones always can).
    pub fn encode(&self, text: &str, allow_special: bool) -> Result<Vec<u32>, TokenizerError> {
        let tokenizer = if allow_special { &self.full } else { &self.plain };
        let encoding = tokenizer.encode_fast(text, false).map_err(|e| TokenizerError::Encode(e.to_string()))?;
        let ids = encoding.get_ids().to_vec();
        if !allow_special && let Some(id) = ids.iter().find(|id| self.control.contains(id)) {
            return Err(TokenizerError::Encode(format!(
                "plain text would become control token {id} (`{}`); the tokenizer cannot represent it safely",
                self.piece(*id).unwrap_or_default()
            )));
        }
        Ok(ids)
    }

    /// The first control token in a text (the longest, where several start at one place): its byte range and id.
    pub fn find_control(&self, text: &str) -> Option<(usize, usize, u32)> {
        self.control
            .iter()
            .filter_map(|id| {
                let token = self.pieces.get(id)?.text.as_str();
                let start = text.find(token)?;
                Some((start, start + token.len(), *id))
            })
            .min_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)))
    }

    /// Encodes a text and groups the ids by the words that the pre-tokenizer cut it into; an added token is a word.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_words(&self, text: &str) -> Result<Vec<Vec<u32>>, TokenizerError> {
        let encoding = self.full.encode(text, false).map_err(|e| TokenizerError::Encode(e.to_string()))?;
        let mut words: Vec<Vec<u32>> = Vec::new();
        let mut last = None;
        for (id, word) in encoding.get_ids().iter().zip(encoding.get_word_ids()) {
            match words.last_mut() {
                Some(open) if word.is_some() && *word == last => open.push(*id),
                _ => words.push(vec![*id]),
            }
            last = *word;
        }
        Ok(words)
    }

    /// Decodes ids. Ids outside the vocabulary give nothing; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TokenizerError::Decode`] when the decoder fails.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TokenizerError> {
        self.full.decode(ids, skip_special).map_err(|e| TokenizerError::Decode(e.to_string()))
    }

    /// The id of a token by its exact text in the vocabulary.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// The vocabulary's text of a token: for byte-level tokenizers in their byte alphabet (`Ġ` for a space).
    pub fn piece(&self, id: u32) -> Option<&str> {
        self.pieces.get(&id).map(|p| p.text.as_str())
    }

    /// The bytes a token stands for; for an added token, its text. `None` for an unknown id.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let piece = self.pieces.get(&id)?;
        if !piece.added
            && let Some(bytes) = piece.text.chars().map(byte_of).collect::<Option<Vec<u8>>>()
        {
            return Some(bytes);
        }
        Some(piece.text.as_bytes().to_vec())
    }

    /// One more than the largest id. A model's embedding may have more rows.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Whether the token is marked special: left out of text that is decoded with `skip_special`.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// Tokens that text encoded without `allow_special` can never become.
    pub fn control_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.control.iter().copied()
    }

    /// The end-of-sequence ids the tokenizer itself names.
    pub fn eos_ids(&self) -> Vec<u32> {
        self.eos.iter().filter_map(|t| self.id_of(t)).collect()
    }

    /// Beginning-of-sequence token.
    pub fn bos_token(&self) -> Option<&str> {
        self.bos.as_deref()
    }

    /// End-of-sequence token.
    pub fn eos_token(&self) -> Option<&str> {
        self.eos.as_deref()
    }

    /// Padding token.
    pub fn pad_token(&self) -> Option<&str> {
        self.pad.as_deref()
    }

    /// Jinja source of the chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` (with the chat template) and `special_tokens_map.json`, from
    /// which `transformers` builds a tokenizer that gives the same ids.
    ///
    /// # Errors
    /// [`TokenizerError::Io`].
    pub fn save(&self, dir: &Path) -> Result<(), TokenizerError> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |source| TokenizerError::Io { path, source }
        };
        std::fs::create_dir_all(dir).map_err(io(dir))?;
        let mut special = serde_json::Map::new();
        for (key, token) in
            [("bos_token", &self.bos), ("eos_token", &self.eos), ("pad_token", &self.pad), ("unk_token", &self.unk)]
        {
            if let Some(token) = token {
                special.insert(key.into(), json!(token));
            }
        }
        let mut decoder = serde_json::Map::new();
        for token in self.json.get("added_tokens").and_then(Value::as_array).into_iter().flatten() {
            if let (Some(id), Some(map)) = (token.get("id").and_then(Value::as_u64), token.as_object()) {
                let mut map = map.clone();
                map.shift_remove("id");
                decoder.insert(id.to_string(), Value::Object(map));
            }
        }
        let mut config = special.clone();
        config.insert("add_prefix_space".into(), json!(false));
        config.insert("added_tokens_decoder".into(), Value::Object(decoder));
        config.insert("clean_up_tokenization_spaces".into(), json!(false));
        config.insert("model_max_length".into(), json!(1_000_000_000_000_000_019_884_624_838_656u128 as f64));
        config.insert("tokenizer_class".into(), json!("PreTrainedTokenizerFast"));
        if let Some(template) = &self.chat_template {
            config.insert("chat_template".into(), json!(template));
        }
        for (name, text) in [
            ("tokenizer.json", pretty(&self.json)),
            ("tokenizer_config.json", pretty(&Value::Object(config))),
            ("special_tokens_map.json", pretty(&Value::Object(special))),
        ] {
            let path = dir.join(name);
            write_atomic(&path, text.as_bytes()).map_err(io(&path))?;
        }
        Ok(())
    }
}

fn pretty(value: &Value) -> String {
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}

/// Writes to a temporary name beside the file and renames, so that a reader never sees half a file.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&temporary, path)
}

/// Whether a token that is not marked special still plays the part of one: it has the look of a control token, the
/// tokenizer names it as an end, or the chat template builds turns with it.
fn is_control(content: &str, named: &HashSet<&str>, template: Option<&str>) -> bool {
    if CONTENT_TAGS.contains(&content) {
        return false;
    }
    let bracketed = content.len() > 4
        && (content.starts_with("<|") && content.ends_with("|>")
            || content.starts_with("<｜") && content.ends_with("｜>"));
    let tag = content.len() > 2
        && (content.starts_with('<') && content.ends_with('>') || content.starts_with('[') && content.ends_with(']'));
    bracketed || named.contains(content) || (tag && template.is_some_and(|t| t.contains(content)))
}

/// `tokenizer.json` without the control tokens, neither as added tokens nor in the model's vocabulary. The added tokens
/// that stay go into the vocabulary, so that they keep their ids.
fn without_control(json: &Value, control: &HashSet<&str>, kept: &[(u32, &str)]) -> Value {
    let mut json = json.clone();
    if let Some(list) = json.get_mut("added_tokens").and_then(Value::as_array_mut) {
        list.retain(|t| t.get("content").and_then(Value::as_str).is_none_or(|c| !control.contains(c)));
    }
    // Templates of post-processors refer to special tokens by name; nothing is added at the ends here anyway.
    if let Some(map) = json.as_object_mut() {
        map.insert("post_processor".into(), Value::Null);
    }
    let unk = json.pointer("/model/unk_token").and_then(Value::as_str).map(str::to_string);
    if let Some(vocab) = json.pointer_mut("/model/vocab").and_then(Value::as_object_mut) {
        vocab.retain(|token, _| !control.contains(token.as_str()) || unk.as_deref() == Some(token));
        for (id, content) in kept {
            vocab.insert((*content).to_string(), json!(id));
        }
    }
    json
}

/// The byte that a character of the byte-level alphabet stands for: printable Latin-1 stands for itself, the other 68
/// bytes are shifted to U+0100 and up, in order.
pub(crate) fn byte_of(c: char) -> Option<u8> {
    let code = c as u32;
    let printable = |b: u32| (33..=126).contains(&b) || (161..=172).contains(&b) || (174..=255).contains(&b);
    if code < 256 {
        return u8::try_from(code).ok().filter(|_| printable(code));
    }
    let mut shifted = (0u32..256).filter(|b| !printable(*b));
    shifted.nth((code - 256) as usize).and_then(|b| u8::try_from(b).ok())
}

fn read_json(path: &Path) -> Result<Option<Value>, TokenizerError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|e| TokenizerError::invalid(path.display().to_string(), format!("not JSON: {e}"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TokenizerError::Io { path: path.to_path_buf(), source }),
    }
}

/// What the files beside `tokenizer.json` say.
fn read_meta(dir: &Path) -> Result<TokenizerMeta, TokenizerError> {
    let config = read_json(&dir.join("tokenizer_config.json"))?.unwrap_or(Value::Null);
    let map = read_json(&dir.join("special_tokens_map.json"))?.unwrap_or(Value::Null);
    // A token is given as its text or as an object with a `content`.
    let token = |key: &str| {
        [&config, &map].into_iter().find_map(|v| {
            let v = v.get(key)?;
            v.as_str().or_else(|| v.get("content")?.as_str()).map(str::to_string)
        })
    };
    let jinja = dir.join("chat_template.jinja");
    let chat_template = match std::fs::read_to_string(&jinja) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => template_of(config.get("chat_template")),
        Err(source) => return Err(TokenizerError::Io { path: jinja, source }),
    };
    Ok(TokenizerMeta {
        chat_template,
        bos: token("bos_token"),
        eos: token("eos_token"),
        pad: token("pad_token"),
        unk: token("unk_token"),
    })
}

/// A template is a string, or a list of named ones of which `default` counts.
fn template_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list
            .iter()
            .find(|t| t.get("name").and_then(Value::as_str) == Some("default"))
            .and_then(|t| t.get("template")?.as_str().map(str::to_string)),
        _ => None,
    }
}
