use super::*;

const WARMUP: u64 = 5;

/// Success slowly rising, everything else steady.
fn healthy(step: usize) -> Observation {
    Observation {
        success: Some(0.4 + 0.002 * step as f64),
        reward_std: Some(2.0),
        entropy: Some(0.5),
        grad_norm: Some(1.0 + 0.1 * (step % 3) as f64),
        format_valid: Some(0.99),
        mutual_information: step.is_multiple_of(5).then_some(2.0),
        reasoning_length: Some(20.0),
        repetition: Some(0.4),
        validation: None,
    }
}

/// The signals that speak in each of `n` iterations of `change` after 20 healthy ones.
fn after(n: usize, change: impl Fn(&mut Observation, usize)) -> Vec<Vec<Signal>> {
    let (mut signals, limits) = (Signals::default(), GuardSignals::default());
    for step in 0..20 {
        assert!(signals.update(&healthy(step), &limits, WARMUP).is_empty(), "healthy at {step}");
    }
    let mut spoke = Vec::new();
    for k in 0..n {
        let mut now = healthy(20);
        change(&mut now, k);
        spoke.push(signals.update(&now, &limits, WARMUP).into_iter().map(|a| a.signal).collect());
    }
    spoke
}

#[test]
fn steady_numbers_never_speak() {
    assert!(after(30, |_, _| {}).iter().all(Vec::is_empty));
}

#[test]
fn a_slow_decay_is_health_and_a_crash_is_not() {
    let slow = after(60, |now, k| now.entropy = Some(0.5 * 0.985f64.powi(k as i32)));
    assert!(slow.iter().all(Vec::is_empty), "{slow:?}");
    let crash = after(6, |now, _| now.entropy = Some(0.05));
    assert!(crash.last().unwrap().contains(&Signal::EntropyCrash));
    let burst = after(6, |now, _| now.entropy = Some(1.5));
    assert!(burst.last().unwrap().contains(&Signal::EntropyBurst));
}

#[test]
fn a_falling_spread_is_health_while_success_rises() {
    let fall = |rise: f64| {
        after(6, |now, k| {
            now.reward_std = Some(0.3);
            now.success = Some(0.44 + rise * k as f64);
        })
    };
    assert!(fall(0.0).last().unwrap().contains(&Signal::RewardStd));
    assert!(fall(0.08).iter().all(Vec::is_empty));
}

#[test]
fn one_spike_of_the_gradient_norm_speaks_once_and_nothing_hides_it() {
    let spike = after(3, |now, k| now.grad_norm = Some(if k == 1 { 50.0 } else { 1.0 }));
    assert_eq!(spike, [vec![], vec![Signal::GradNorm], vec![]]);
    let infinite = Observation::of(&[("actor/grad_norm_max".to_owned(), f64::NAN)].into_iter().collect(), 0.5, None);
    assert_eq!(infinite.grad_norm, Some(f64::MAX));
}

#[test]
fn the_other_signals_speak_when_they_should() {
    let last = |change: &dyn Fn(&mut Observation, usize)| after(12, change).pop().unwrap();
    assert_eq!(last(&|now, _| now.format_valid = Some(0.8)), [Signal::Format]);
    assert_eq!(last(&|now, _| now.mutual_information = Some(0.1)), [Signal::MutualInformation]);
    assert!(after(4, |now, _| now.reasoning_length = Some(3.0)).pop().unwrap().contains(&Signal::ReasoningLength));
    assert!(after(4, |now, _| now.repetition = Some(0.9)).pop().unwrap().contains(&Signal::Repetition));
    assert_eq!(last(&|now, _| now.success = Some(0.3)), [Signal::Success]);
    let validations = |now: &mut Observation, k: usize| now.validation = Some(if k < 3 { 0.6 } else { 0.4 });
    assert_eq!(last(&validations), [Signal::Validation]);
}

#[test]
fn a_deep_fall_is_severe() {
    let (mut signals, limits) = (Signals::default(), GuardSignals::default());
    for step in 0..20 {
        signals.update(&healthy(step), &limits, WARMUP);
    }
    let mut severe = Vec::new();
    for _ in 0..10 {
        let now = Observation { success: Some(0.0), ..healthy(20) };
        severe.push(signals.update(&now, &limits, WARMUP).iter().any(|a| a.severe));
    }
    assert!(!severe[0] && severe[4..].iter().all(|s| *s), "{severe:?}");
}

#[test]
fn nothing_speaks_before_there_is_a_past_or_about_hopeless_beginnings() {
    let (mut signals, limits) = (Signals::default(), GuardSignals::default());
    let wild = Observation { entropy: Some(9.0), success: Some(0.0), ..healthy(0) };
    for _ in 0..WARMUP {
        assert!(signals.update(&wild, &limits, WARMUP).is_empty());
    }
    assert!(signals.update(&Observation::default(), &limits, WARMUP).is_empty(), "nothing was measured");
    let mut signals = Signals::default();
    for step in 0..30 {
        let poor = Observation { success: Some(if step < 15 { 0.05 } else { 0.0 }), ..Observation::default() };
        assert!(signals.update(&poor, &limits, WARMUP).is_empty());
    }
}

#[test]
fn noise_around_a_plateau_is_no_fall() {
    let (mut signals, limits) = (Signals::default(), GuardSignals::default());
    // Success of 32 groups whose members all fare alike: a standard deviation of nine points.
    for step in 0..300u64 {
        let draws = (0..32).filter(|g| crate::rollout::sampling_seed(5, step, *g, 0).is_multiple_of(2)).count();
        let now = Observation { success: Some(draws as f64 / 32.0), ..Observation::default() };
        assert!(signals.update(&now, &limits, WARMUP).iter().all(|a| !a.severe), "{step}");
    }
}
