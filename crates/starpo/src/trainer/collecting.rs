//! Collecting: the groups of an iteration, and fresh ones in place of those that teach nothing.

use std::time::Instant;

use super::{TrainError, Trainer};
use crate::episode::Episode;
use crate::instances::Group;
use crate::metrics::Metrics;
use crate::rollout::{RolloutOptions, collect};
use crate::rollout_log::write_rollouts;
use crate::rollout_metrics::batch_metrics;
use crate::select::silent_groups;

/// Keeps the random streams of the rounds of replacement apart from those of iterations and evaluations.
const REPLACEMENT_STREAM: u64 = 1 << 42;

/// What an iteration has collected.
pub(super) struct Collected {
    /// Every group played, in the order of their labels; some of them may have been replaced.
    pub groups: Vec<Group>,
    /// The episodes of those that were not, members of a group next to each other.
    pub episodes: Vec<Episode>,
}

impl Trainer {
    /// Plays the groups of an iteration.
    pub(super) fn collect_groups(&mut self, number: u64, metrics: &mut Metrics) -> Result<Collected, TrainError> {
        let began = Instant::now();
        let groups = self.progress.train_seeds.next_groups(&self.train_plan, &self.validation_keys);
        let options = self.rollout_options(false, number);
        let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &groups, &options)?;
        let seconds = began.elapsed().as_secs_f64();
        let sampled: u64 = episodes.iter().map(|e| e.response_length() as u64).sum();
        self.progress.generated.0 += sampled;
        self.progress.generated.1 += seconds;
        metrics.set("timing_s/gen", seconds);
        metrics.set("perf/generated_tokens_per_s", sampled as f64 / seconds.max(1e-9));
        for (name, value) in batch_metrics(&episodes) {
            metrics.set(format!("train/{name}"), value);
        }
        if self.config.trainer.log_rollouts > 0 && number.is_multiple_of(self.config.trainer.log_rollouts as u64) {
            write_rollouts(&self.run.rollouts_dir(), "train", number, &episodes)?;
        }
        Ok(Collected { groups, episodes })
    }

    /// Plays fresh start states in place of groups whose returns are all equal, round after round, within
    /// `rollout_filter_replace_budget` or what a guard adds to it (dynamic sampling, DAPO, arXiv 2503.14476).
    pub(super) fn replace_silent_groups(
        &mut self,
        collected: &mut Collected,
        number: u64,
        metrics: &mut Metrics,
    ) -> Result<(), TrainError> {
        let began = Instant::now();
        let mut left = self.config.actor_rollout_ref.rollout.rollout_filter_replace_budget;
        // Alone in its group every episode is silent.
        if self.progress.guard.effects.filter && self.config.es_manager.train.group_size > 1 {
            let share = self.config.guard.replace_share * self.config.es_manager.train.env_groups as f64;
            left = left.max(share.round() as usize);
        }
        let mut rounds = 0u64;
        let mut replaced = 0;
        while left > 0 {
            let mut silent = silent_groups(&collected.episodes);
            silent.truncate(left);
            if silent.is_empty() {
                break;
            }
            rounds += 1;
            let first = collected.groups.len();
            for label in &silent {
                let tag = collected.groups[*label].tag.clone();
                let seed = self.progress.train_seeds.next_seed(&tag, &self.validation_keys);
                collected.groups.push(Group { tag, seed, split: collected.groups[*label].split });
            }
            let options = self.rollout_options(false, rounds * REPLACEMENT_STREAM + number);
            let fresh = &collected.groups[first..];
            let episodes = collect(&mut self.policy, &self.dialogue, &self.context, fresh, &options)?;
            collected.episodes.retain(|e| !silent.contains(&e.group));
            collected.episodes.extend(episodes.into_iter().map(|e| relabelled(e, first, &options)));
            left -= silent.len();
            replaced += silent.len();
        }
        metrics.set("train/rollout_attempts", (rounds + 1) as f64);
        metrics.set("rollout/replaced_groups", replaced as f64);
        if rounds > 0 {
            metrics.set("timing_s/replace", began.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

/// The episode of a later round, with the labels that it has among all groups of the iteration.
fn relabelled(mut episode: Episode, first: usize, options: &RolloutOptions) -> Episode {
    episode.group += first;
    episode.env_id += first * options.group_size;
    episode
}
