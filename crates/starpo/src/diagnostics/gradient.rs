//! Gradient analysis: how large the gradients of the task and of the regularisers are, by the spread of returns within
//! groups (RAGEN-2, arXiv 2604.06268, section on signal and noise). No optimiser step is taken.
//!
//! A bucket is one mini-batch here, so norms do not depend on how full mini-batches are.

use crate::config::{Config, GradientBuckets};
use crate::filter::{fixed_buckets, quantile_buckets};
use crate::metrics::Metrics;
use crate::policy::{Policy, TokenGrads};
use crate::tokens::mean;
use crate::update::{Controls, MiniBatch, Terms, Totals, TrainingBatch, UpdateError};

/// A bucket: its name and the rows of the batch in it.
struct Bucket {
    name: String,
    rows: Vec<usize>,
    stds: Vec<f64>,
}

/// Measures the gradient norms of task, entropy and KL terms for every bucket of `batch` and for all of it.
///
/// # Shapes
/// `groups`: the group of each row. `group_std`: label and spread of each kept group.
///
/// # Errors
/// [`UpdateError`]; the accumulated gradients are cleared in any case.
pub fn gradient_analysis(
    policy: &mut dyn Policy,
    batch: &TrainingBatch,
    groups: &[usize],
    group_std: &[(usize, f64)],
    config: &Config,
    controls: &Controls,
    seed: u64,
) -> Result<Metrics, UpdateError> {
    let mut metrics = Metrics::new();
    for bucket in buckets(groups, group_std, config) {
        let prefix = format!("grad_norm/{}", bucket.name);
        let share = bucket.rows.len() as f64 / groups.len().max(1) as f64;
        metrics.set(format!("{prefix}/sample_count"), bucket.rows.len() as f64);
        metrics.set(format!("{prefix}/sample_pct"), 100.0 * share);
        metrics.set(format!("{prefix}/group_rv_count"), bucket.stds.len() as f64);
        if bucket.rows.is_empty() {
            continue;
        }
        metrics.set(format!("{prefix}/reward_std_mean"), mean(&bucket.stds));
        metrics.set(format!("{prefix}/reward_std_min"), bucket.stds.iter().copied().fold(f64::INFINITY, f64::min));
        metrics.set(format!("{prefix}/reward_std_max"), bucket.stds.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let part = batch.rows_subset(&bucket.rows);
        let tokens = part.rows.tokens().max(1) as f64;
        let mut total = 0.0;
        for (name, loss_name, terms) in parts(config, controls) {
            let (norm, loss) = norm_of(policy, &part, config, controls, terms, seed)?;
            total += loss;
            metrics.set(format!("{prefix}/{name}"), norm);
            metrics.set(format!("{prefix}/per_sample/{name}"), norm / bucket.rows.len() as f64);
            metrics.set(format!("{prefix}/per_token/{name}"), norm / tokens);
            metrics.set(format!("{prefix}/loss/{loss_name}"), loss);
            if bucket.name == "all" {
                metrics.set(format!("actor/grad_norm/{name}"), norm);
                metrics.set(format!("actor/loss/{loss_name}"), loss);
            }
        }
        metrics.set(format!("{prefix}/loss/total"), total);
    }
    Ok(metrics)
}

/// The terms that are on: name of the norm, name of the loss, which terms.
fn parts(config: &Config, controls: &Controls) -> Vec<(&'static str, &'static str, Terms)> {
    let actor = &config.actor_rollout_ref.actor;
    let none = Terms { policy: false, entropy: false, kl: false };
    let mut parts = vec![("task", "policy", Terms { policy: true, ..none })];
    if controls.entropy_coeff != 0.0 || actor.entropy_band.enable {
        parts.push(("entropy", "entropy", Terms { entropy: true, ..none }));
    }
    if actor.use_kl_loss || controls.anchor_coef > 0.0 {
        parts.push(("kl", "kl", Terms { kl: true, ..none }));
    }
    parts
}

fn norm_of(
    policy: &mut dyn Policy,
    batch: &TrainingBatch,
    config: &Config,
    controls: &Controls,
    terms: Terms,
    seed: u64,
) -> Result<(f64, f64), UpdateError> {
    let temperature = config.actor_rollout_ref.rollout.temperature as f32;
    let mini = MiniBatch::new(batch, 0..batch.rows.len(), config);
    let marks = mini.covariance_marks(policy, config, temperature, seed, 0)?;
    let (mut totals, mut failure) = (Totals::default(), None);
    policy.clear_gradients();
    policy.accumulate(mini.sequences(), temperature, &mut |indices, scores| {
        mini.actor_loss(indices, scores, config, controls, &marks, terms, &mut totals).unwrap_or_else(|error| {
            failure.get_or_insert(error);
            TokenGrads::default()
        })
    })?;
    let norm = policy.gradient_norm();
    policy.clear_gradients();
    match failure {
        Some(error) => Err(error.into()),
        None => Ok((norm, totals.pg_loss + totals.entropy_term + totals.kl_value)),
    }
}

/// The buckets of the configuration over the kept groups, and `all`.
fn buckets(groups: &[usize], group_std: &[(usize, f64)], config: &Config) -> Vec<Bucket> {
    let stds: Vec<f64> = group_std.iter().map(|(_, std)| *std).collect();
    let trainer = &config.trainer;
    let (members, names): (Vec<Vec<usize>>, Vec<String>) = match trainer.gradient_analysis_bucket_mode {
        GradientBuckets::Quantile => {
            let members = quantile_buckets(&stds, trainer.gradient_analysis_num_buckets);
            let names = (1..=members.len()).map(|k| format!("bucket_{k}")).collect();
            (members, names)
        }
        GradientBuckets::FixedRv => {
            let members = fixed_buckets(&stds);
            let last = members.len() - 1;
            let name = |k: usize| if k == last { format!("rv_{k}_inf") } else { format!("rv_{k}_{}", k + 1) };
            let names = (0..members.len()).map(name).collect();
            (members, names)
        }
    };
    let all = ("all".to_owned(), (0..group_std.len()).collect::<Vec<usize>>());
    let each = names.into_iter().zip(members).chain(std::iter::once(all));
    each.map(|(name, members)| {
        let labels: std::collections::BTreeSet<usize> = members.iter().map(|g| group_std[*g].0).collect();
        Bucket {
            name,
            rows: (0..groups.len()).filter(|row| labels.contains(&groups[*row])).collect(),
            stds: members.iter().map(|g| stds[*g]).collect(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(overrides: &[&str]) -> Config {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Config::load(None, &overrides).unwrap()
    }

    #[test]
    fn rows_follow_their_groups() {
        let config = config(&["trainer.gradient_analysis_num_buckets=2"]);
        let found = buckets(&[4, 4, 7, 9], &[(4, 0.5), (7, 3.0), (9, 0.1)], &config);
        let shown: Vec<(&str, &[usize])> = found.iter().map(|b| (&b.name[..], &b.rows[..])).collect();
        assert_eq!(shown, [("bucket_1", &[3][..]), ("bucket_2", &[0, 1, 2]), ("all", &[0, 1, 2, 3])]);
        assert_eq!(found[1].stds, [0.5, 3.0]);
    }

    #[test]
    fn fixed_buckets_may_be_empty() {
        let config = config(&["trainer.gradient_analysis_bucket_mode=fixed_rv"]);
        let found = buckets(&[0, 1], &[(0, 0.5), (1, 7.0)], &config);
        assert_eq!(found.len(), 7);
        assert_eq!((found[0].rows.clone(), found[5].rows.clone(), found[2].rows.len()), (vec![0], vec![1], 0));
        assert_eq!(found[5].name, "rv_5_inf");
    }

    #[test]
    fn only_terms_that_are_on_are_measured() {
        let names = |overrides: &[&str]| {
            let config = config(overrides);
            parts(&config, &Controls::of(&config)).iter().map(|p| p.0).collect::<Vec<_>>()
        };
        assert_eq!(names(&["actor_rollout_ref.actor.entropy_coeff=0"]), ["task"]);
        let regularised = ["actor_rollout_ref.actor.entropy_coeff=0.1", "actor_rollout_ref.actor.use_kl_loss=true"];
        assert_eq!(names(&regularised), ["task", "entropy", "kl"]);
    }
}
