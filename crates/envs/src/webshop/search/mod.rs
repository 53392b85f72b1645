//! Full-text search over products, as the original's Lucene index ranks them.
//!
//! What is here: [`analyze`] (text to terms), [`Index`] (terms to ranked products). What is not here: which fields of
//! a product are searched ([`crate::webshop::Product::contents`]).

mod analyzer;
mod emoji;
mod index;
mod porter;
mod porter_rules;

pub use analyzer::analyze;
pub use index::{Hit, Index, lossy_length};
pub use porter::stem;
