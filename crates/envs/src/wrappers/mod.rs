//! Wrappers: an environment with something changed about it, in the spirit of Gymnasium's. One a file.
//!
//! Any environment's settings may hold a list `wrappers`; the first one is the innermost:
//!
//! ```
//! use ragen_envs::{Split, make};
//! use serde_json::json;
//!
//! let mut env = make("sokoban", &json!({
//!     "wrappers": [
//!         { "time_limit": { "max_steps": 2 } },
//!         { "reward_term": { "term": "step_cost", "weight": -0.5 } },
//!         { "reward_scale": { "scale": 10.0 } },
//!     ],
//! }))?;
//! env.reset(123, Split::Train)?;
//! assert_eq!(env.step("Up")?.reward, 10.0 * (-0.1 - 0.5));
//! assert!(env.step("Up")?.truncated);
//! # Ok::<(), ragen_envs::EnvError>(())
//! ```
//!
//! One of one's own in Rust implements [`Wrapper`] and is put on with [`Wrapped::new`]; for the settings it is one line
//! in the table `WRAPPERS`.

mod observation_rewrite;
mod reward_clip;
mod reward_scale;
mod reward_term;
pub mod reward_terms;
mod time_limit;
mod wrapped;

pub use observation_rewrite::{ObservationRewrite, ObservationRewriteConfig};
pub use reward_clip::{RewardClip, RewardClipConfig};
pub use reward_scale::{RewardScale, RewardScaleConfig};
pub use reward_term::{RewardTermConfig, RewardTermWrapper};
pub use time_limit::{TimeLimit, TimeLimitConfig};
pub use wrapped::{Wrapped, Wrapper};

use serde_json::Value;

use crate::config::{nearest, refuse};
use crate::{EnvError, Environment};

/// The key of the list in an environment's settings.
pub const KEY: &str = "wrappers";

/// Makes a wrapper from its settings; the name is for messages.
type Make = fn(&str, &Value) -> Result<Box<dyn Wrapper>, EnvError>;

/// Every wrapper there is.
const WRAPPERS: [(&str, Make); 5] = [
    (observation_rewrite::NAME, |place, config| Ok(Box::new(ObservationRewrite::from_json(place, config)?))),
    (reward_clip::NAME, |place, config| Ok(Box::new(RewardClip::from_json(place, config)?))),
    (reward_scale::NAME, |place, config| Ok(Box::new(RewardScale::from_json(place, config)?))),
    (reward_term::NAME, |place, config| Ok(Box::new(RewardTermWrapper::from_json(place, config)?))),
    (time_limit::NAME, |place, config| Ok(Box::new(TimeLimit::from_json(place, config)?))),
];

/// The names that a list of wrappers may hold, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    WRAPPERS.iter().map(|(name, _)| *name).collect()
}

/// Takes the list out of an environment's settings: those without it, and the list (`null` without one).
pub(crate) fn split(config: &Value) -> (Value, Value) {
    let mut own = config.clone();
    let list = own.as_object_mut().and_then(|object| object.remove(KEY)).unwrap_or_default();
    (own, list)
}

/// Puts a list of wrappers on an environment, the first one innermost. `null` is an empty list.
///
/// # Errors
/// [`EnvError::Config`] for anything but a list of mappings with one known name each, and for settings that a wrapper
/// refuses.
pub fn wrap(env: Box<dyn Environment>, list: &Value) -> Result<Box<dyn Environment>, EnvError> {
    let env_type = env.spec().env_type.clone();
    let list = match list {
        Value::Null => return Ok(env),
        Value::Array(list) => list,
        other => {
            let message = format!(
                "setting `{KEY}`: expected a list such as [{{time_limit: {{max_steps: 20}}}}], found `{other}`"
            );
            return Err(refuse(&env_type, message));
        }
    };
    list.iter().enumerate().try_fold(env, |env, (i, entry)| {
        let place = format!("{env_type}.{KEY}[{i}]");
        let only = entry.as_object().filter(|entry| entry.len() == 1).and_then(|entry| entry.iter().next());
        let Some((name, config)) = only else {
            return Err(refuse(&place, format!("expected one name with its settings, found `{entry}`")));
        };
        let Some((_, make)) = WRAPPERS.iter().find(|(known, _)| known == name) else {
            let hint = match nearest(name, names().into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", names().join(", ")),
            };
            return Err(refuse(&place, format!("no such wrapper as `{name}`; {hint}")));
        };
        let wrapper = make(&format!("{place}.{name}"), config)?;
        Ok(Box::new(Wrapped::new(env, wrapper)) as Box<dyn Environment>)
    })
}

#[cfg(test)]
mod tests;
