//! Settings of the WebShop environment.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ENV_TYPE;
use crate::EnvError;
use crate::config::{check_range, read, refuse};

/// Rules and goal in words, with one example of the grammar.
pub const INSTRUCTION: &str = "You shop online. Find a product that fits the instruction, choose the options it names \
                               and buy it within the price. On the first page you search; everywhere else you click \
                               what the page offers. For example, to look for a rain jacket answer search[rain \
                               jacket], and to open the product B0EXAMPLE1 among the results answer \
                               click[b0example1].";

const KEYS: [&str; 23] = [
    "dataset",
    "data_dir",
    "items_file",
    "attributes_file",
    "human_file",
    "nouns_file",
    "prices_file",
    "num_products",
    "data_seed",
    "human_goals",
    "limit_goals",
    "difficulty",
    "eval_goals",
    "observation_mode",
    "show_attrs",
    "results_per_page",
    "max_results",
    "num_prev_obs",
    "num_prev_actions",
    "wrapper",
    "history_length",
    "compact",
    "hints",
];

/// Where products come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dataset {
    /// Generated, in the statistical shape of the public thousand.
    #[default]
    Builtin,
    /// Generated, with titles, options and instructions of a few short words.
    Reduced,
    /// The public files of 1,000 products, from `data_dir`.
    Small,
    /// The public files of 1.18 million products, from `data_dir`.
    Full,
}

/// How pages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationMode {
    /// Pieces of text joined with ` [SEP] `.
    #[default]
    Text,
    /// A line a piece, buttons marked.
    TextRich,
}

/// Whose prompt, validity and reward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrapper {
    /// RAGEN: the graded reward.
    #[default]
    RagenV1,
    /// RAGEN-2: 1 for a perfect purchase, else 0.
    RagenV2,
    /// verl-agent: 10 for a perfect purchase, else 0; its own prompt.
    VerlAgent,
}

/// Which goals are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulty {
    /// All of them.
    #[default]
    Any,
    /// Those of this grade; see [`super::Grade`].
    Easy,
    /// Likewise.
    Medium,
    /// Likewise.
    Hard,
}

/// Which goals validation plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalGoals {
    /// RAGEN's: goals 500 to 1499 of the shuffled list.
    #[default]
    Val,
    /// The test set: goals 0 to 499.
    Test,
}

/// Settings of the WebShop environment, with RAGEN's names where it has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebShopConfig {
    /// `builtin`, `reduced`, `small` or `full`. Default `builtin`.
    pub dataset: Dataset,
    /// Folder of the public files; `small` and `full` need it unless `items_file` is given. A file may end in `.gz`,
    /// and `.json` may be `.jsonl`. Default none.
    pub data_dir: Option<String>,
    /// Products, instead of the file that the data set names. Default none.
    pub items_file: Option<String>,
    /// Attributes and synthetic instructions, likewise. Default none.
    pub attributes_file: Option<String>,
    /// Instructions of people, likewise. Default none.
    pub human_file: Option<String>,
    /// Nouns of titles: a mapping of product identifiers to lists. Default none: by a rule.
    pub nouns_file: Option<String>,
    /// What products with a range of prices cost: a mapping of product identifiers to dollars. Default none: drawn.
    pub prices_file: Option<String>,
    /// Products to take, from the front of the file, or to generate, at least 1. Default none: all of the file, 1,000
    /// generated ones, 260 of the reduced set.
    pub num_products: Option<usize>,
    /// Seed of generated products and of drawn prices and price caps. Default 0.
    pub data_seed: u64,
    /// Goals that people wrote instead of synthetic ones; needs files. Default false.
    pub human_goals: bool,
    /// Goals to keep, drawn by weight; -1: all. Default -1.
    pub limit_goals: i64,
    /// `any`, `easy`, `medium` or `hard`. Default `any`.
    pub difficulty: Difficulty,
    /// Goals that validation plays, `val` or `test`. Default `val`.
    pub eval_goals: EvalGoals,
    /// `text` or `text_rich`. Default `text`.
    pub observation_mode: ObservationMode,
    /// Products have a page with their attributes. Default false.
    pub show_attrs: bool,
    /// Products on a page of results, 1 to 50. Default 10.
    pub results_per_page: usize,
    /// Most results of a search, 1 to 1,000. Default 50.
    pub max_results: usize,
    /// Earlier observations shown before the present one, 0 to 100. Default 0.
    pub num_prev_obs: usize,
    /// Earlier actions shown likewise, 0 to 100. Default 0.
    pub num_prev_actions: usize,
    /// `ragen_v1`, `ragen_v2` or `verl_agent`. Default `ragen_v1`.
    pub wrapper: Wrapper,
    /// Steps that verl-agent's prompt looks back on, 0 to 100. Default 2.
    pub history_length: usize,
    /// Pages in as few words as possible, for tiny models, instead of the wrapper's prompt. Default false.
    pub compact: bool,
    /// RAGEN's prompt ends in advice on how to shop. Default true.
    pub hints: bool,
}

impl Default for WebShopConfig {
    fn default() -> Self {
        Self {
            dataset: Dataset::Builtin,
            data_dir: None,
            items_file: None,
            attributes_file: None,
            human_file: None,
            nouns_file: None,
            prices_file: None,
            num_products: None,
            data_seed: 0,
            human_goals: false,
            limit_goals: -1,
            difficulty: Difficulty::Any,
            eval_goals: EvalGoals::Val,
            observation_mode: ObservationMode::Text,
            show_attrs: false,
            results_per_page: 10,
            max_results: 50,
            num_prev_obs: 0,
            num_prev_actions: 0,
            wrapper: Wrapper::RagenV1,
            history_length: 2,
            compact: false,
            hints: true,
        }
    }
}

impl WebShopConfig {
    /// Reads the settings from JSON and checks them.
    ///
    /// # Errors
    /// [`EnvError::Config`] for unknown keys, wrong types and values out of range.
    pub fn from_json(config: &Value) -> Result<Self, EnvError> {
        let config: Self = read(ENV_TYPE, config, &KEYS)?;
        config.check()?;
        Ok(config)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`EnvError::Config`] with the setting, what was expected and what was found.
    pub fn check(&self) -> Result<(), EnvError> {
        check_range(ENV_TYPE, "results_per_page", self.results_per_page, 1, 50)?;
        check_range(ENV_TYPE, "max_results", self.max_results, 1, 1000)?;
        check_range(ENV_TYPE, "num_prev_obs", self.num_prev_obs, 0, 100)?;
        check_range(ENV_TYPE, "num_prev_actions", self.num_prev_actions, 0, 100)?;
        check_range(ENV_TYPE, "history_length", self.history_length, 0, 100)?;
        if let Some(num) = self.num_products {
            let most = match (self.dataset, self.generated()) {
                (Dataset::Reduced, true) => super::catalogue::MOST_REDUCED,
                (_, true) => 1_000_000,
                (_, false) => usize::MAX,
            };
            check_range(ENV_TYPE, "num_products", num, 1, most)?;
        }
        if self.limit_goals != -1 && self.limit_goals < 1 {
            return Err(refuse(
                ENV_TYPE,
                format!("setting `limit_goals`: expected -1 (all) or at least 1, found {}", self.limit_goals),
            ));
        }
        if self.generated() {
            let files = [
                ("data_dir", &self.data_dir),
                ("attributes_file", &self.attributes_file),
                ("human_file", &self.human_file),
                ("nouns_file", &self.nouns_file),
                ("prices_file", &self.prices_file),
            ];
            if let Some((key, _)) = files.iter().find(|(_, file)| file.is_some()) {
                return Err(refuse(
                    ENV_TYPE,
                    format!("setting `{key}` has no effect on generated products; set `dataset` to small or full"),
                ));
            }
            if self.human_goals {
                return Err(refuse(
                    ENV_TYPE,
                    "setting `human_goals`: generated products have no instructions of people; set `dataset` to small \
                     or full and `data_dir` to the folder of the public files",
                ));
            }
        } else if self.data_dir.is_none() && self.items_file.is_none() {
            return Err(refuse(
                ENV_TYPE,
                "datasets small and full need `data_dir`, the folder of the public files, or `items_file`; builtin and \
                 reduced need no files",
            ));
        }
        Ok(())
    }

    /// Whether products are made rather than read.
    #[must_use]
    pub fn generated(&self) -> bool {
        matches!(self.dataset, Dataset::Builtin | Dataset::Reduced) && self.items_file.is_none()
    }
}
