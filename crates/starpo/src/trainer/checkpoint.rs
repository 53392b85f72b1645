//! Checkpoints: writing them, going on from one, and what a run leaves at its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ragen_model::weights::save::{SaveType, save_model};

use super::set_up::Parts;
use super::{GuardSummary, Observer, RunEnd, SuccessSummary, Summary, TrainError, Trainer};
use crate::config::Config;
use crate::evaluate::{Baselines, Score};
use crate::local_policy::LocalPolicy;
use crate::policy::Policy;
use crate::progress::Progress;
use crate::run_dir::RunDir;

impl Trainer {
    /// Goes on with the run in `run_dir` from its latest checkpoint. `config` is what the run was started with, with
    /// any later overrides applied.
    ///
    /// # Errors
    /// [`TrainError`].
    pub fn resume(config: Config, run_dir: &Path, stop: Arc<AtomicBool>) -> Result<Self, TrainError> {
        let parts = Parts::load(&config)?;
        let run = RunDir::open(run_dir)?;
        let checkpoint = run.latest_checkpoint()?;
        let mut trainer = Self::assemble(config, parts, run, stop)?;
        let Some(checkpoint) = checkpoint else {
            trainer.run.write_config(&trainer.config)?;
            trainer.run.rewind(0)?;
            return Ok(trainer);
        };
        let broken = |e: &dyn std::fmt::Display| TrainError::Resume(format!("{}: {e}", checkpoint.path.display()));
        trainer.progress = Progress::load(&checkpoint.path).map_err(|e| broken(&e))?;
        let begun = trainer.run.read_config()?;
        refuse_changes_of_the_past(&begun, &trainer.config, trainer.progress.warm_start_done)?;
        trainer.progress.review_end(&trainer.config);
        trainer.policy.load(&checkpoint.path.join("actor")).map_err(|e| broken(&e))?;
        if let Some(critic) = &mut trainer.critic {
            critic.load(&checkpoint.path.join("critic")).map_err(|e| broken(&e))?;
        }
        if let Some(reference) = &mut trainer.reference {
            reference.load(&checkpoint.path.join("ref")).map_err(|e| broken(&e))?;
        }
        if let Some(snapshots) = &mut trainer.snapshots {
            let (healthy, candidate) = (checkpoint.path.join("healthy"), checkpoint.path.join("candidate"));
            if healthy.is_dir() && candidate.is_dir() {
                snapshots.healthy.load(&healthy).map_err(|e| broken(&e))?;
                snapshots.candidate.load(&candidate).map_err(|e| broken(&e))?;
            } else {
                // The guard may act only from here on.
                snapshots.set(&trainer.policy);
            }
        }
        // Only now is it certain that the checkpoint and this configuration fit together.
        trainer.run.write_config(&trainer.config)?;
        trainer.run.rewind(checkpoint.step)?;
        Ok(trainer)
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), TrainError> {
        let (policy, critic, reference) = (&self.policy, &self.critic, &self.reference);
        let (snapshots, progress) = (&self.snapshots, &self.progress);
        self.run.write_checkpoint(progress.iteration, self.config.trainer.max_actor_ckpt_to_keep, |dir| {
            let save = |name: &str, policy: &LocalPolicy| -> Result<(), String> {
                let dir = dir.join(name);
                std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
                policy.save(&dir).map_err(|e| e.to_string())
            };
            save("actor", policy)?;
            if let Some(critic) = critic {
                save("critic", critic)?;
            }
            if let Some(reference) = reference {
                save("ref", reference)?;
            }
            if let Some(snapshots) = snapshots {
                save("healthy", &snapshots.healthy)?;
                save("candidate", &snapshots.candidate)?;
            }
            progress.save(dir).map_err(|e| e.to_string())
        })?;
        Ok(())
    }

    pub(super) fn interrupted(&mut self) -> Result<RunEnd, TrainError> {
        self.checkpoint()?;
        Ok(RunEnd::Interrupted { iteration: self.progress.iteration })
    }

    pub(super) fn finish(&mut self, observe: &mut Observer<'_>) -> Result<RunEnd, TrainError> {
        if self.progress.latest_eval.is_none() || self.config.trainer.test_freq <= 0 {
            self.validate(observe)?;
        }
        self.checkpoint()?;
        self.export(&self.run.model_dir())?;
        let rate = |(tokens, seconds): (u64, f64)| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        let p = &self.progress;
        let Some(eval) = &p.latest_eval else {
            return Err(TrainError::Resume("the run has no evaluation".to_owned()));
        };
        let by_tag = eval
            .by_tag
            .iter()
            .map(|(tag, now)| {
                let before = p.warm_start_eval.as_ref().and_then(|e| e.by_tag.get(tag));
                (tag.clone(), success_summary(before.map(|b| b.score), now.score, now.baselines))
            })
            .collect();
        let summary = Summary {
            iterations: p.iteration,
            // What is found in the last iteration ends nothing early.
            ended_early: p.ended_early.filter(|_| p.iteration < self.config.trainer.total_training_steps),
            seconds: p.seconds,
            generated_tokens_per_second: rate(p.generated),
            trained_tokens_per_second: rate(p.trained),
            success: success_summary(p.warm_start_eval.as_ref().map(|e| e.score), eval.score, eval.baselines),
            success_by_tag: if eval.by_tag.len() > 1 { by_tag } else { BTreeMap::new() },
            mismatch_max: p.mismatch_max,
            weights_sha256: self.policy.weights_sha256(),
            warm_start_steps: p.warm_start_steps,
            guard: GuardSummary {
                warnings: p.guard.warnings,
                interventions: p.guard.interventions,
                rollbacks: p.guard.rollbacks,
            },
            leaked_instances_skipped: p.train_seeds.skipped + p.warm_start_seeds.skipped,
        };
        self.run.write_summary(&summary)?;
        Ok(RunEnd::Finished(Box::new(summary)))
    }

    /// Writes the model as a Hugging Face folder.
    ///
    /// # Errors
    /// [`TrainError`] when writing fails.
    pub fn export(&self, dir: &Path) -> Result<(), TrainError> {
        let model = self.policy.model();
        let generation = self.generation_config.as_ref();
        save_model(dir, model.model().config(), model.params(), Some(&self.tokenizer), generation, SaveType::F32)
            .map_err(|e| TrainError::Policy(e.into()))
    }
}

/// Settings that only say how a run begins. Once it has begun, another value would change nothing, or would make it a
/// run that cannot be had in one go.
fn refuse_changes_of_the_past(begun: &Config, now: &Config, warm_start_done: bool) -> Result<(), TrainError> {
    let past = |path: &str| {
        ["seed", "model_path", "es_manager.train.seed", "algorithm.kl_ctrl.kl_coef"].contains(&path)
            || warm_start_done && path.starts_with("warm_start.")
    };
    let changed = begun.differences(now).map_err(crate::run_dir::RunDirError::from)?;
    match changed.into_iter().find(|change| past(&change.path)) {
        Some(change) => Err(TrainError::Past { key: change.path, begun: change.here, now: change.there }),
        None => Ok(()),
    }
}

fn success_summary(warm_start: Option<Score>, last: Score, baselines: Baselines) -> SuccessSummary {
    SuccessSummary {
        warm_start: warm_start.map(|s| s.success),
        r#final: last.success,
        random: baselines.random.map(|s| s.success),
        oracle: baselines.oracle.map(|s| s.success),
        random_n: baselines.random.map(|s| s.n),
        oracle_n: baselines.oracle.map(|s| s.n),
        n: last.n,
        ci95: [last.ci95.0, last.ci95.1],
    }
}
