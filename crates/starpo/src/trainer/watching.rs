//! Watching a run: validation, diagnostics, the guard and what it decides.

use std::time::Instant;

use super::{EVAL_STREAM, EndedEarly, Event, Observer, TrainError, Trainer};
use crate::config::GuardMode;
use crate::diagnostics::batch::batch_health;
use crate::diagnostics::collapse::measure_collapse;
use crate::episode::Episode;
use crate::evaluate::evaluate;
use crate::guard::signals::Observation;
use crate::local_policy::LocalPolicy;
use crate::metrics::Metrics;
use crate::rollout_log::write_rollouts;

/// Policies that a guard can go back to.
pub(super) struct Snapshots {
    /// The last one known to be healthy.
    pub healthy: LocalPolicy,
    /// A later one, on trial.
    pub candidate: LocalPolicy,
}

impl Snapshots {
    /// Both are what `policy` is now.
    pub(super) fn set(&mut self, policy: &LocalPolicy) {
        self.healthy.model_mut().set_params(policy.model().params());
        self.candidate.model_mut().set_params(policy.model().params());
    }

    /// The candidate has proved itself, and what `policy` is now becomes the candidate.
    fn advance(&mut self, policy: &LocalPolicy) {
        std::mem::swap(&mut self.healthy, &mut self.candidate);
        self.candidate.model_mut().set_params(policy.model().params());
    }
}

impl Trainer {
    /// Measures the batch as it was collected, with the weights that collected it.
    pub(super) fn diagnose(
        &mut self,
        episodes: &[Episode],
        number: u64,
        metrics: &mut Metrics,
    ) -> Result<(), TrainError> {
        metrics.merge("", &batch_health(episodes));
        let setting = &self.config.collapse_detection;
        if !setting.is_due(number, self.config.agent_proxy.enable_think) {
            return Ok(());
        }
        let began = Instant::now();
        let temperature = self.config.actor_rollout_ref.rollout.temperature as f32;
        let state = &mut self.progress.collapse;
        let seed = self.config.seed;
        let found = measure_collapse(&mut self.policy, episodes, setting, state, temperature, seed, number)?;
        metrics.merge("", &found);
        let seconds = began.elapsed().as_secs_f64();
        self.progress.collapse.seconds.0 += seconds;
        metrics.set("timing_s/collapse_metrics", seconds);
        Ok(())
    }

    /// Shows the iteration to the guard and does what it decides.
    pub(super) fn guard(
        &mut self,
        number: u64,
        success: f64,
        metrics: &mut Metrics,
        observe: &mut Observer<'_>,
    ) -> Result<(), TrainError> {
        let setting = &self.config.guard;
        if setting.mode == GuardMode::Off {
            return Ok(());
        }
        let now = Observation::of(metrics, success, self.progress.unseen_validation.take());
        let decision = self.progress.guard.observe(&now, setting);
        if let Some(snapshots) = &mut self.snapshots {
            if decision.rollback {
                self.policy.model_mut().set_params(snapshots.healthy.model().params());
                // Moments of the gradients that led astray would lead there again.
                self.policy.model_mut().reset_optimizer();
                snapshots.set(&self.policy);
            } else if decision.snapshot {
                snapshots.advance(&self.policy);
            }
        }
        for change in &decision.changes {
            self.run.append_event(number, "guard", change.details())?;
            observe(Event::Guard { iteration: number, change });
        }
        let guard = &self.progress.guard;
        metrics.set("guard/health", guard.health as u8 as f64);
        metrics.set("guard/warnings", guard.warnings as f64);
        metrics.set("guard/interventions", guard.interventions as f64);
        metrics.set("guard/rollbacks", guard.rollbacks as f64);
        metrics.set("guard/lr_scale", guard.effects.lr_scale);
        if decision.stop {
            self.progress.ended_early = Some(EndedEarly::Guard);
        }
        Ok(())
    }

    /// Plays the validation instances.
    pub(super) fn validate(&mut self, observe: &mut Observer<'_>) -> Result<(), TrainError> {
        let began = Instant::now();
        let iteration = self.progress.iteration;
        // The same streams every time: evaluations differ by the weights alone.
        let options = self.rollout_options(true, EVAL_STREAM);
        let (report, episodes) = evaluate(&mut self.policy, &self.dialogue, &self.context, &self.validation, &options)?;
        write_rollouts(&self.run.rollouts_dir(), "val", iteration, &episodes)?;
        let mut metrics = Metrics::new();
        for (name, value) in &report.metrics {
            metrics.set(format!("val-env/{name}"), *value);
        }
        metrics.set("val/success", report.score.success);
        let mut stop = false;
        if self.config.trainer.early_stopping {
            for (name, value) in &report.metrics {
                if let Some(tag) = name.strip_suffix("/success").filter(|tag| !tag.contains('/')) {
                    stop |= self.progress.early_stop.validation(tag, *value);
                }
            }
            if stop {
                metrics.set("early_stopped/low_validation_success", 1.0);
                self.progress.ended_early = Some(EndedEarly::LowValidation);
            }
        }
        self.progress.unseen_validation = Some(report.score.success);
        metrics.set("timing_s/testing", began.elapsed().as_secs_f64());
        self.record(iteration, &metrics)?;
        self.progress.seconds += began.elapsed().as_secs_f64();
        observe(Event::Evaluated { iteration, report: &report });
        self.progress.latest_eval = Some(report);
        Ok(())
    }

    pub(super) fn record(&mut self, step: u64, metrics: &Metrics) -> Result<(), TrainError> {
        self.run.append_metrics(step, metrics)?;
        if let Some(events) = &mut self.events {
            events.write(step, metrics)?;
        }
        Ok(())
    }
}
