//! `ragen export`: a model as a Hugging Face folder.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ragen_model::weights::save::{SaveType, save_model};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::model;
use crate::output;

/// Write a model as a Hugging Face folder, for transformers, vLLM, llama.cpp's converter and the like.
///
/// From a run folder it takes the final model, or the latest checkpoint of a run that has not ended.
#[derive(Args)]
#[command(after_help = "Example:\n  ragen export runs/sokoban my-agent --dtype bf16")]
pub struct Export {
    #[arg(value_name = "RUN-DIR|MODEL", help = model::MODEL_HELP)]
    model: String,
    /// The folder to make; it must not hold anything yet.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Type of the written values; f32 is exact.
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    dtype: Dtype,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Type of the written values.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Dtype {
    F32,
    F16,
    Bf16,
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let occupied = match std::fs::read_dir(&self.out) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        if occupied {
            return Err(Failure::input(format!(
                "{} is there already and not an empty folder: choose another OUT; nothing was changed",
                self.out.display()
            )));
        }
        let found = model::load(&self.model, 0)?;
        let save_type = match self.dtype {
            Dtype::F32 => SaveType::F32,
            Dtype::F16 => SaveType::F16,
            Dtype::Bf16 => SaveType::Bf16,
        };
        let source = &found.source;
        let generation = source.generation_config.as_ref();
        save_model(&self.out, &source.config, &source.params, Some(&source.tokenizer), generation, save_type)
            .map_err(Failure::run)?;
        let parameters = source.params.len();
        if self.json {
            output::json(&json!({ "from": found.origin, "to": self.out, "parameters": parameters }));
        } else {
            output::line(format_args!(
                "wrote {} ({parameters} parameters, {}) from {}",
                self.out.display(),
                source.config.family.architecture(),
                found.origin
            ));
        }
        Ok(())
    }
}
