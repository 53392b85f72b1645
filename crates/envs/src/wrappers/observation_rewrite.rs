//! `observation_rewrite`: other words for what the agent sees. The counterpart of Gymnasium's `TransformObservation`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Wrapper;
use crate::config::{read, refuse};
use crate::{EnvError, EnvSpec};

pub(super) const NAME: &str = "observation_rewrite";

/// Settings of `observation_rewrite`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservationRewriteConfig {
    /// Pairs of a text and what to put in its place. All are looked for at once: what one has written, another does not
    /// change. Of several that fit at a place the first one listed is taken. Symbols of the legend change along.
    /// Default none.
    pub replace: Vec<(String, String)>,
    /// Put before every observation. Default none.
    pub prefix: String,
    /// Put after every observation. Default none.
    pub suffix: String,
    /// Characters of the environment's text that are kept, at least 1; the rest becomes `…`. Null: all. Default null.
    pub max_chars: Option<usize>,
}

/// Rewrites observations.
#[derive(Clone, Debug)]
pub struct ObservationRewrite {
    config: ObservationRewriteConfig,
}

impl ObservationRewrite {
    pub(super) fn from_json(place: &str, config: &Value) -> Result<Self, EnvError> {
        let config: ObservationRewriteConfig = read(place, config, &["replace", "prefix", "suffix", "max_chars"])?;
        if config.replace.iter().any(|(from, _)| from.is_empty()) {
            return Err(refuse(
                place,
                "setting `replace`: expected pairs of a text and its replacement, found an empty text",
            ));
        }
        if config.max_chars == Some(0) {
            return Err(refuse(place, "setting `max_chars`: expected at least 1, found 0"));
        }
        Ok(Self { config })
    }

    fn replaced(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            match self.config.replace.iter().find(|(from, _)| rest.starts_with(from.as_str())) {
                Some((from, to)) => {
                    out.push_str(to);
                    rest = rest.get(from.len()..).unwrap_or_default();
                }
                None => {
                    out.push(next);
                    rest = rest.get(next.len_utf8()..).unwrap_or_default();
                }
            }
        }
        out
    }
}

impl Wrapper for ObservationRewrite {
    fn observe(&self, observation: String) -> String {
        let mut text = self.replaced(&observation);
        if let Some((cut, _)) = self.config.max_chars.and_then(|most| text.char_indices().nth(most)) {
            text.truncate(cut);
            text.push('…');
        }
        format!("{}{text}{}", self.config.prefix, self.config.suffix)
    }

    fn describe(&self, spec: &mut EnvSpec) {
        for (symbol, _) in &mut spec.legend {
            *symbol = self.replaced(symbol);
        }
    }
}
