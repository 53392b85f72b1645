//! The warm start within a run: supervised steps before reinforcement learning.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{EVAL_STREAM, Event, HELD_OUT_OFFSET, Observer, TrainError, Trainer};
use crate::instances::{EnvTag, Group, SeedCounter};
use crate::rollout::collect;
use crate::warm_start::warm_start_step;

impl Trainer {
    /// Supervised steps until the target or the limit. False: asked to stop.
    pub(super) fn warm_start(&mut self, observe: &mut Observer<'_>) -> Result<bool, TrainError> {
        let setting = self.config.warm_start.clone();
        let held_out = self.held_out_groups(setting.eval_instances);
        while self.progress.warm_start_steps < setting.max_steps {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let began = Instant::now();
            let step = self.progress.warm_start_steps;
            let tags: Vec<&EnvTag> = self.train_plan.iter().map(|(tag, _)| tag).collect();
            let report = warm_start_step(
                &mut self.policy,
                &self.dialogue,
                &self.context,
                &tags,
                &mut self.progress.warm_start_seeds,
                &self.validation_keys,
                &self.config,
                step,
            )?;
            let step = step + 1;
            self.progress.warm_start_steps = step;
            observe(Event::WarmStart { step, report });
            let mut reached = false;
            if setting.target_success < 1.0 && step.is_multiple_of(setting.eval_every) {
                let options = self.rollout_options(true, EVAL_STREAM + (1 << 20) + step);
                let episodes = collect(&mut self.policy, &self.dialogue, &self.context, &held_out, &options)?;
                let solved = episodes.iter().filter(|e| e.outcome.is_success()).count();
                let success = solved as f64 / episodes.len().max(1) as f64;
                observe(Event::WarmStartEvaluated { step, success });
                reached = success >= setting.target_success;
            }
            self.progress.seconds += began.elapsed().as_secs_f64();
            if reached {
                break;
            }
        }
        self.progress.warm_start_done = true;
        // Reinforcement learning starts with moments of its own gradients.
        self.policy.model_mut().reset_optimizer();
        if let Some(reference) = &mut self.reference {
            reference.model_mut().set_params(self.policy.model().params());
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.set(&self.policy);
        }
        if let Some(critic) = &mut self.critic {
            // The critic's body starts from what the policy has learned to see.
            let mut params = critic.model().params().to_vec();
            let body = self.policy.model().params();
            params[..body.len()].copy_from_slice(body);
            critic.model_mut().set_params(&params);
        }
        self.validate(observe)?;
        self.progress.warm_start_eval = self.progress.latest_eval.clone();
        self.checkpoint()?;
        Ok(true)
    }

    /// Training instances that neither the warm start nor training plays.
    fn held_out_groups(&self, n: usize) -> Vec<Group> {
        let mut seeds = SeedCounter::new(self.config.es_manager.train.seed.wrapping_add(HELD_OUT_OFFSET));
        let tags = self.train_plan.len().max(1);
        let plan: Vec<(EnvTag, usize)> = self
            .train_plan
            .iter()
            .enumerate()
            .map(|(i, (tag, _))| (tag.clone(), n / tags + usize::from(i < n % tags)))
            .collect();
        seeds.next_groups(&plan, &self.validation_keys)
    }
}
