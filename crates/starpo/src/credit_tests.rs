use super::*;
use crate::episode::fixtures::{episode, turn};

/// Two episodes of a group. The first goes s → t and earns 0, then 1; the second stays in s and earns 0, then 0.
fn group() -> Vec<Episode> {
    vec![episode(0, 0, &[turn("s", 2, 0.0), turn("t", 1, 1.0)]), episode(0, 1, &[turn("s", 1, 0.0), turn("s", 2, 0.0)])]
}

fn config(overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Config::load(None, &overrides).unwrap()
}

fn bare<'a>(episodes: &'a [&'a Episode], rows: &'a Rows) -> CreditInputs<'a> {
    CreditInputs {
        episodes,
        rows,
        samples: rows,
        values: &[],
        token_penalty: &[],
        shaping: &[],
        greedy_returns: &[],
        log_prob: &[],
        sum_pi_squared: &[],
        groups_collected: 1,
    }
}

fn credit_of(config: &Config, episodes: &[Episode], change: impl FnOnce(&mut CreditInputs<'_>)) -> Credit {
    let refs: Vec<&Episode> = episodes.iter().collect();
    let rows = Rows::from_lengths(episodes.iter().map(Episode::response_length));
    let mut inputs = bare(&refs, &rows);
    change(&mut inputs);
    assign(config, &inputs).unwrap()
}

fn advantages(overrides: &[&str], episodes: &[Episode]) -> Vec<f64> {
    credit_of(&config(overrides), episodes, |_| {}).advantages
}

#[track_caller]
fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{got:?}");
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-5, "{got:?} instead of {want:?}");
    }
}

const DR: &str = "algorithm.norm_adv_by_std_in_grpo=false";
const SUM: &str = "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum";

#[test]
fn row_estimators_give_every_token_of_an_episode_the_same() {
    // Returns 1 and 0: mean 0.5, standard deviation √½.
    let unit = 0.5 / 0.5f64.sqrt();
    close(&advantages(&[], &group()), &[unit, unit, unit, -unit, -unit, -unit]);
    close(&advantages(&[DR, SUM], &group()), &[0.5, 0.5, 0.5, -0.5, -0.5, -0.5]);
    close(&advantages(&["algorithm.adv_estimator=rloo"], &group())[2..4], &[1.0, -1.0]);
    close(&advantages(&["algorithm.adv_estimator=opo"], &group())[2..4], &[0.5, -0.5]);
    close(&advantages(&["algorithm.adv_estimator=grpo_passk"], &group())[2..4], &[2f64.sqrt(), 0.0]);
}

#[test]
fn the_batch_deviation_is_taken_over_all_groups() {
    let mut episodes = group();
    episodes.push(episode(1, 0, &[turn("u", 1, 4.0)]));
    episodes.push(episode(1, 1, &[turn("u", 1, 2.0)]));
    let got = advantages(&["algorithm.adv_std_scope=batch"], &episodes);
    let std = crate::tokens::mean_std(&[1.0, 0.0, 4.0, 2.0]).1;
    close(&[got[0], got[6]], &[0.5 / std, 1.0 / std]);
}

#[test]
fn gigpo_compares_turns_that_meet_in_a_state() {
    let gigpo = ["algorithm.adv_estimator=gigpo", "algorithm.gigpo.mode=mean_norm", "algorithm.high_level_gamma=0.5"];
    // Rewards to go: 0.5 and 1 in the first episode, 0 and 0 in the second. State s is met three times, with the
    // mean 1/6; t once, so its turn has no term of its own.
    let (third, sixth) = (1.0 / 3.0, 1.0 / 6.0);
    let want = [0.5 + third, 0.5 + third, 0.5, -0.5 - sixth, -0.5 - sixth, -0.5 - sixth];
    close(&advantages(&gigpo, &group()), &want);
    let without = [&gigpo[..], &["algorithm.gigpo.step_advantage_w=0"]].concat();
    close(&advantages(&without, &group()), &[0.5, 0.5, 0.5, -0.5, -0.5, -0.5]);
}

#[test]
fn gigpo_never_compares_across_groups() {
    let mut episodes = group();
    episodes[1].group = 1;
    let gigpo = ["algorithm.adv_estimator=gigpo", "algorithm.gigpo.mode=mean_norm"];
    let got = advantages(&gigpo, &episodes);
    // Each is alone in its group: no episode term, and s is met twice by the second episode only, both times for 0.
    close(&got, &[0.0; 6]);
}

#[test]
fn turn_level_adds_a_term_to_all_turns_but_the_last() {
    let mut episodes = group();
    episodes[1].turns[0].reward = -2.0;
    // Returns 1 and −2: ±1.5 around the mean. First turns earn 0 and −2: ±1.
    let options = ["algorithm.adv_estimator=turn_level", DR, "algorithm.turn_advantage_w=0.5"];
    close(&advantages(&options, &episodes), &[2.0, 2.0, 1.5, -2.0, -1.5, -1.5]);
}

#[test]
fn remax_subtracts_the_greedy_return_of_the_instance() {
    let config = config(&["algorithm.adv_estimator=remax"]);
    let got = credit_of(&config, &group(), |inputs| inputs.greedy_returns = &[0.25, 0.25]);
    close(&got.advantages, &[0.75, 0.75, 0.75, -0.25, -0.25, -0.25]);
}

#[test]
fn the_optimal_token_baseline_weighs_by_the_score_function() {
    let config = config(&["algorithm.adv_estimator=optimal_token_baseline"]);
    // Equal weights at every position: the baseline is the mean return.
    let got = credit_of(&config, &group(), |inputs| {
        inputs.log_prob = &[-0.5; 6];
        inputs.sum_pi_squared = &[0.5; 6];
    });
    close(&got.advantages, &[0.5, 0.5, 0.5, -0.5, -0.5, -0.5]);
}

#[test]
fn turn_scores_put_rewards_where_they_were_earned() {
    let mut episodes = group();
    episodes[0].turns[0].penalty = -0.1;
    let critic = ["algorithm.adv_estimator=gae", "agent_proxy.use_turn_scores=true"];
    let with =
        |overrides: &[&str]| credit_of(&config(overrides), &episodes, |inputs| inputs.values = &[0.0; 6]).value_targets;
    close(&with(&critic), &[0.9, 0.9, 1.0, 0.0, 0.0, 0.0]);
    close(&with(&critic[..1]), &[0.9, 0.9, 0.9, 0.0, 0.0, 0.0]);
    // Over turns: 1, then −0.1 + 0.5·1.
    let bi = [critic[0], "algorithm.bi_level_gae=true", "algorithm.high_level_gamma=0.5"];
    close(&with(&bi), &[0.4, 0.4, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_penalty_per_token_lowers_its_own_advantage_only() {
    let got = credit_of(&config(&[DR, SUM]), &group(), |inputs| inputs.token_penalty = &[0.0, 0.2, 0.0, 0.0, 0.0, 0.0]);
    close(&got.advantages, &[0.5, 0.3, 0.5, -0.5, -0.5, -0.5]);
}

#[test]
fn shaping_counts_for_credit_and_leaves_the_raw_return() {
    let episodes = group();
    let shaping = [vec![0.0, -1.0], vec![0.0, 0.0]];
    let refs: Vec<&Episode> = episodes.iter().collect();
    let rows = Rows::from_lengths([3, 3]);
    let inputs = CreditInputs { shaping: &shaping, ..bare(&refs, &rows) };
    let got = assign(&config(&[DR, SUM]), &inputs).unwrap();
    close(&got.advantages, &[0.0; 6]);
    assert_eq!(episodes[0].total_return(), 1.0);
}

#[test]
fn what_follows_the_estimator_multiplies() {
    let base = [DR, SUM];
    let with = |more: &[&str]| advantages(&[&base[..], more].concat(), &group());
    close(&with(&["algorithm.zero_task_advantage=true"]), &[0.0; 6]);
    close(&with(&["algorithm.negative_advantage_scale=0.5"])[2..4], &[0.5, -0.25]);
    let config = config(&[DR, SUM, "actor_rollout_ref.actor.filter_loss_scaling=sqrt"]);
    let got = credit_of(&config, &group(), |inputs| inputs.groups_collected = 4);
    close(&got.advantages[2..4], &[0.25, -0.25]);
    // Both episodes sample three tokens, so the weight by length is 1.
    let length = with(&["algorithm.grpo_advantage_length_weight=true"]);
    close(&length, &[0.5, 0.5, 0.5, -0.5, -0.5, -0.5]);
    let mut episodes = group();
    episodes.push(episode(1, 0, &[turn("u", 1, 4.0)]));
    episodes.push(episode(1, 1, &[turn("u", 1, 2.0)]));
    let soft = advantages(&[DR, SUM, "algorithm.soft_advantage_reweight=true"], &episodes);
    close(&[soft[0], soft[6]], &[0.25, 1.0]);
    let lengths = advantages(&[DR, SUM, "algorithm.grpo_advantage_length_weight=true"], &episodes);
    close(&[lengths[0], lengths[6]], &[0.5 * 2.0 / 3.0, 2.0]);
}

#[test]
fn a_group_of_one_left_by_chance_teaches_nothing() {
    let episodes = vec![episode(0, 0, &[turn("s", 2, 3.0)])];
    for estimator in ["grpo", "rloo", "opo", "gpg", "gigpo", "turn_level"] {
        close(&advantages(&[&format!("algorithm.adv_estimator={estimator}")], &episodes), &[0.0, 0.0]);
    }
}

#[test]
fn empty_and_broken_batches() {
    assert!(advantages(&[], &[]).is_empty());
    let mut episodes = group();
    episodes[0].turns[0].reward = f64::NAN;
    let refs: Vec<&Episode> = episodes.iter().collect();
    let rows = Rows::from_lengths([3, 3]);
    let inputs = bare(&refs, &rows);
    for estimator in ["grpo", "gigpo", "turn_level", "reinforce_plus_plus"] {
        let config = config(&[&format!("algorithm.adv_estimator={estimator}")]);
        assert!(assign(&config, &inputs).is_err(), "{estimator}");
    }
}

/// The same episodes with a sample for each turn.
fn a_sample_a_turn(mut episodes: Vec<Episode>) -> (Vec<Episode>, Rows) {
    for episode in &mut episodes {
        episode.sample_starts = episode.turns.iter().map(|t| t.prompt.start).collect();
    }
    let sequences: Vec<_> = episodes.iter().flat_map(Episode::to_sequences).collect();
    (episodes, Rows::from_lengths(sequences.iter().map(|s| s.sampled_len())))
}

fn credit_of_samples(overrides: &[&str], episodes: &[Episode], samples: &Rows, values: &[f64]) -> Credit {
    let refs: Vec<&Episode> = episodes.iter().collect();
    let rows = Rows::from_lengths(episodes.iter().map(Episode::response_length));
    assign(&config(overrides), &CreditInputs { samples, values, ..bare(&refs, &rows) }).unwrap()
}

#[test]
fn samples_do_not_count_as_episodes() {
    // An episode of three turns against one of a single turn: the mean of a group is over the two.
    let episodes = vec![
        episode(0, 0, &[turn("s", 2, 0.0), turn("t", 1, 0.0), turn("u", 1, 1.0)]),
        episode(0, 1, &[turn("s", 1, 0.0)]),
    ];
    let (episodes, samples) = a_sample_a_turn(episodes);
    assert_eq!(samples.lengths().collect::<Vec<_>>(), [2, 1, 1, 1]);
    for setting in [&[DR, SUM][..], &["algorithm.adv_estimator=opo"], &["algorithm.adv_estimator=turn_level"]] {
        let got = credit_of_samples(setting, &episodes, &samples, &[]).advantages;
        let whole = credit_of(&config(setting), &episodes, |_| {}).advantages;
        assert_eq!(got, whole, "{setting:?}");
    }
    let got = credit_of_samples(&[DR, SUM], &episodes, &samples, &[]).advantages;
    close(&got, &[0.5, 0.5, 0.5, 0.5, -0.5]);
}

#[test]
fn every_sample_carries_the_return_of_its_episode() {
    let (episodes, samples) = a_sample_a_turn(group());
    let with = |overrides: &[&str]| credit_of_samples(overrides, &episodes, &samples, &[0.0; 6]);
    // γ = 0.5 shows where a row ends: the first episode's return 1 is on the last token of both of its samples.
    let gae = ["algorithm.adv_estimator=gae", "algorithm.gamma=0.5", "algorithm.lam=1"];
    close(&with(&gae).value_targets, &[0.5, 1.0, 1.0, 0.0, 0.0, 0.0]);
    // Rewards on turns flow from turn to turn, over the samples' ends.
    let turns = with(&[&gae[..], &["agent_proxy.use_turn_scores=true"]].concat());
    close(&turns.value_targets, &[0.25, 0.5, 1.0, 0.0, 0.0, 0.0]);
}
