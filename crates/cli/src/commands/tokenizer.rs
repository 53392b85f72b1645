//! `ragen tokenizer`: the tokenizer of the built-in model.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ragen_starpo::tiny;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output;

/// The tokenizer of the tiny model.
#[derive(Args)]
pub struct Tokenizer {
    #[command(subcommand)]
    command: TokenizerCommand,
}

#[derive(Subcommand)]
enum TokenizerCommand {
    /// Train the tokenizer anew on the text of all built-in environments, as the shipped one was.
    Train {
        /// Folder for tokenizer.json, tokenizer_config.json and special_tokens_map.json.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Tokenizer {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let TokenizerCommand::Train { out, json } = self.command;
        std::fs::create_dir_all(&out)
            .map_err(|error| Failure::input(format!("cannot make the folder {}: {error}", out.display())))?;
        let tokenizer = tiny::train_tokenizer().map_err(Failure::run)?;
        tokenizer.save(&out).map_err(Failure::run)?;
        let size = tokenizer.vocab_size();
        let shipped = tiny::tokenizer()?;
        // The shipped one is what this command wrote when the environments' text was last changed.
        let same = (0..size.max(shipped.vocab_size()) as u32).all(|id| tokenizer.piece(id) == shipped.piece(id));
        if json {
            output::json(&json!({ "out": out, "vocab_size": size, "same_vocabulary_as_shipped": same }));
        } else {
            output::line(format_args!("wrote a tokenizer of {size} tokens to {}", out.display()));
            let relation = if same { "the same vocabulary as" } else { "another vocabulary than" };
            output::line(format_args!("it has {relation} the shipped one"));
        }
        Ok(())
    }
}
