//! The shop: products, their index and the goals; read-only and shared by all environments of equal settings.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::ENV_TYPE;
use super::catalogue;
use super::config::{Dataset, Difficulty, WebShopConfig};
use super::goal::{Goal, Goals};
use super::grade::Grade;
use super::load::{self, LoadError};
use super::product::{Product, RawProduct};
use super::reward::{Reward, reward};
use super::search::Index;
use super::split::ragen_order;
use crate::EnvError;
use crate::config::refuse;
use crate::rng::PythonRandom;

/// Shops kept for the next environment of the same settings.
const KEPT: usize = 4;

/// The shop.
#[derive(Debug)]
pub struct Shop {
    products: Vec<Product>,
    index: Index,
    goals: Goals,
    order: Arc<[u32]>,
    show_attrs: bool,
    results_per_page: usize,
    max_results: usize,
}

/// The shops in use lately, by their settings.
static SHOPS: Mutex<Vec<(String, Arc<Shop>)>> = Mutex::new(Vec::new());

impl Shop {
    /// The shop of these settings. Equal settings share one.
    ///
    /// # Errors
    /// [`EnvError::Config`] for files that cannot be read and settings that leave no goal.
    pub fn open(config: &WebShopConfig) -> Result<Arc<Self>, EnvError> {
        let key = Self::key(config);
        // A panic elsewhere leaves the list as it was.
        let mut shops = SHOPS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = shops.iter().position(|(known, _)| *known == key) {
            let found = shops.remove(at);
            let shop = Arc::clone(&found.1);
            shops.push(found);
            return Ok(shop);
        }
        let shop = Arc::new(Self::new(config)?);
        if shops.len() >= KEPT {
            shops.remove(0);
        }
        shops.push((key, Arc::clone(&shop)));
        Ok(shop)
    }

    /// What of the settings a shop depends on.
    fn key(config: &WebShopConfig) -> String {
        let defaults = WebShopConfig::default();
        let data = WebShopConfig {
            eval_goals: defaults.eval_goals,
            observation_mode: defaults.observation_mode,
            num_prev_obs: defaults.num_prev_obs,
            num_prev_actions: defaults.num_prev_actions,
            wrapper: defaults.wrapper,
            history_length: defaults.history_length,
            compact: defaults.compact,
            hints: defaults.hints,
            ..config.clone()
        };
        format!("{data:?}")
    }

    /// Reads or makes the products, indexes them and lists the goals.
    fn new(config: &WebShopConfig) -> Result<Self, EnvError> {
        // The original draws prices at load and caps right after, from one stream that it does not seed.
        let mut draws = PythonRandom::new(config.data_seed);
        let products = if config.generated() {
            match config.dataset {
                Dataset::Reduced => catalogue::reduced(config.data_seed, config.num_products),
                _ => catalogue::builtin(config.data_seed, config.num_products.unwrap_or(catalogue::BUILTIN)),
            }
        } else {
            read_products(config, &mut draws).map_err(|error| refuse(ENV_TYPE, error.to_string()))?
        };
        Self::of_products(products, config, &mut draws)
    }

    /// A shop of these products; price caps come from `draws`.
    ///
    /// # Errors
    /// [`EnvError::Config`] for settings that leave no goal.
    pub fn of_products(
        products: Vec<Product>,
        config: &WebShopConfig,
        draws: &mut PythonRandom,
    ) -> Result<Self, EnvError> {
        let (mut goals, mut order) =
            Goals::new(&products, config.human_goals, draws).map_err(|what| refuse(ENV_TYPE, what))?;
        let grade = match config.difficulty {
            Difficulty::Any => None,
            Difficulty::Easy => Some(Grade::Easy),
            Difficulty::Medium => Some(Grade::Medium),
            Difficulty::Hard => Some(Grade::Hard),
        };
        if let Some(grade) = grade {
            goals.retain(&products, |goal| Grade::of(goal) == grade);
        }
        if let Ok(limit) = usize::try_from(config.limit_goals) {
            goals.limit(&products, limit, &mut order).map_err(|what| refuse(ENV_TYPE, what))?;
        }
        if goals.is_empty() {
            return Err(refuse(
                ENV_TYPE,
                "these settings leave no goal: expected products with instructions; check `attributes_file`, \
                 `human_goals`, `difficulty` and `num_products`",
            ));
        }
        Ok(Self {
            index: Index::new(products.iter().map(Product::contents)),
            products,
            order: ragen_order(goals.len()),
            goals,
            show_attrs: config.show_attrs,
            results_per_page: config.results_per_page,
            max_results: config.max_results,
        })
    }

    /// All products.
    #[must_use]
    pub fn products(&self) -> &[Product] {
        &self.products
    }

    /// The index over the products, whose document numbers are theirs.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Number of goals.
    #[must_use]
    pub fn num_goals(&self) -> usize {
        self.goals.len()
    }

    /// RAGEN's second permutation of the goals.
    #[must_use]
    pub fn order(&self) -> &Arc<[u32]> {
        &self.order
    }

    /// The goal of this number in the shuffled list.
    #[must_use]
    pub fn goal(&self, number: usize) -> Option<Goal> {
        self.goals.get(&self.products, number)
    }

    /// Whether products have a page with their attributes.
    #[must_use]
    pub fn show_attrs(&self) -> bool {
        self.show_attrs
    }

    /// Products on a page of results.
    #[must_use]
    pub fn results_per_page(&self) -> usize {
        self.results_per_page
    }

    /// Numbers of the products that a search finds, the best first.
    #[must_use]
    pub fn search(&self, keywords: &str) -> Vec<usize> {
        let name = |doc: usize| self.products[doc].asin.as_str();
        self.index.search(keywords, self.max_results, name).into_iter().map(|hit| hit.doc).collect()
    }

    /// What buying the product with these options is worth; `None` for a product that does not exist.
    #[must_use]
    pub fn reward(&self, goal: &Goal, product: usize, options: &[(String, String)]) -> Option<Reward> {
        let (bought, wanted) = (self.products.get(product)?, self.products.get(goal.product)?);
        let chosen: Vec<&str> = options.iter().map(|(_, value)| value.as_str()).collect();
        Some(reward(bought, wanted, goal, bought.price, &chosen))
    }
}

/// Reads the files of a public data set.
fn read_products(config: &WebShopConfig, draws: &mut PythonRandom) -> Result<Vec<Product>, LoadError> {
    let (items, attributes) = match config.dataset {
        Dataset::Full => ("items_shuffle", "items_ins_v2"),
        _ => ("items_shuffle_1000", "items_ins_v2_1000"),
    };
    let items = find(config, config.items_file.as_deref(), items)?;
    let mut attributes = match find(config, config.attributes_file.as_deref(), attributes) {
        Ok(path) => load::attributes(load::open(&path)?, &path)?,
        // People's goals need no attributes file, synthetic ones do.
        Err(_) if config.human_goals && config.attributes_file.is_none() => HashMap::new(),
        Err(error) => return Err(error),
    };
    let mut human = match config.human_goals {
        true => {
            let path = find(config, config.human_file.as_deref(), "items_human_ins")?;
            load::human(load::open(&path)?, &path)?
        }
        false => HashMap::new(),
    };
    let mut nouns: HashMap<String, Vec<String>> = side_file(config.nouns_file.as_deref(), "nouns")?;
    let mut prices: HashMap<String, f64> = side_file(config.prices_file.as_deref(), "prices")?;
    let most = config.num_products.unwrap_or(usize::MAX);
    let mut seen = HashSet::new();
    let mut products = Vec::new();
    let mut read = 0;
    load::records(load::open(&items)?, &items, |raw: RawProduct| {
        read += 1;
        if !seen.contains(&raw.asin)
            && let Some(mut product) = Product::from_raw(raw, draws)?
        {
            let asin = product.asin.as_str();
            let price = prices.remove(asin);
            let (attributes, human) = (attributes.remove(asin), human.remove(asin));
            let nouns = nouns.remove(asin);
            seen.insert(product.asin.clone());
            product.price = price.unwrap_or(product.price);
            product.nouns = nouns;
            product.human = human.unwrap_or_default();
            if let Some(attributes) = attributes {
                product.describe(attributes);
            }
            products.push(product);
        }
        Ok(read < most)
    })?;
    products.shrink_to_fit();
    Ok(products)
}

/// A mapping of identifiers, if a file is named.
fn side_file<T: serde::de::DeserializeOwned>(file: Option<&str>, key: &str) -> Result<HashMap<String, T>, LoadError> {
    match file {
        Some(file) => load::mapping(load::open(Path::new(file))?, Path::new(file), key),
        None => Ok(HashMap::new()),
    }
}

/// The file given, or the one of this name in the data folder, in any of its forms.
fn find(config: &WebShopConfig, given: Option<&str>, stem: &str) -> Result<PathBuf, LoadError> {
    if let Some(given) = given {
        return Ok(PathBuf::from(given));
    }
    let Some(folder) = &config.data_dir else {
        let missing = PathBuf::from(format!("{stem}.json"));
        return Err(LoadError::new(&missing, "set `data_dir`, the folder of the public files, or name this file"));
    };
    let forms = ["json", "json.gz", "jsonl", "jsonl.gz"].map(|end| Path::new(folder).join(format!("{stem}.{end}")));
    match forms.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => Err(LoadError::new(&forms[0], "no such file, nor one that ends in .json.gz, .jsonl or .jsonl.gz")),
    }
}
