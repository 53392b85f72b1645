use super::*;

fn setting(mode: GuardMode) -> Setting {
    Setting { mode, warmup: 5, snapshot_every: 4, calm: 4, ..Setting::default() }
}

fn well() -> Observation {
    Observation {
        success: Some(0.5),
        reward_std: Some(2.0),
        entropy: Some(0.5),
        grad_norm: Some(1.0),
        ..Observation::default()
    }
}

/// Spread and entropy have fallen off a cliff; success has not yet moved.
fn early() -> Observation {
    Observation { reward_std: Some(0.1), entropy: Some(0.01), ..well() }
}

fn fallen() -> Observation {
    Observation { success: Some(0.0), ..well() }
}

/// A guard that has seen `n` iterations that were well.
fn after_well(n: usize, setting: &Setting) -> Guard {
    let mut guard = Guard::default();
    for _ in 0..n {
        assert!(guard.observe(&well(), setting).changes.is_empty());
    }
    guard
}

/// Observes until something changes.
fn until_change(guard: &mut Guard, now: &Observation, setting: &Setting) -> Decision {
    for _ in 0..30 {
        let decision = guard.observe(now, setting);
        if !decision.changes.is_empty() {
            return decision;
        }
    }
    panic!("nothing changes in {guard:?}");
}

#[test]
fn observing_warns_and_changes_nothing_else() {
    let setting = setting(GuardMode::Observe);
    let mut guard = after_well(20, &setting);
    let warned = until_change(&mut guard, &early(), &setting);
    assert_eq!((warned.changes[0].from, warned.changes[0].to), (Health::Healthy, Health::Warned));
    assert!(warned.changes[0].reason.contains("entropy fell from"), "{}", warned.changes[0].reason);
    let mut would = 0;
    for _ in 0..20 {
        let decision = guard.observe(&fallen(), &setting);
        would += decision.changes.iter().filter(|c| c.only_observed && c.action.is_some()).count();
        assert!(!decision.rollback && !decision.stop && !decision.snapshot);
    }
    assert_eq!((guard.effects, guard.interventions, guard.health), (Effects::default(), 0, Health::Warned));
    assert!(would <= 1, "told once for a warning");
}

#[test]
fn off_sees_nothing() {
    let setting = setting(GuardMode::Off);
    let mut guard = after_well(20, &setting);
    assert_eq!(guard.observe(&fallen(), &setting), Decision::default());
    assert_eq!(guard, Guard::default());
}

#[test]
fn early_signals_climb_the_ladder_rung_by_rung() {
    let setting = setting(GuardMode::Act);
    let mut guard = after_well(20, &setting);
    let mut climbed = Vec::new();
    for k in 0..40 {
        // Ever deeper, so that the moving averages never catch up.
        let scale = 0.5f64.powi(k + 1);
        let now = Observation { reward_std: Some(2.0 * scale), entropy: Some(0.5 * scale), ..well() };
        climbed.extend(guard.observe(&now, &setting).changes.into_iter().filter_map(|c| c.action));
        if climbed.len() == 5 {
            break;
        }
    }
    assert_eq!(climbed, [Rung::Filter, Rung::Lr, Rung::Entropy, Rung::Kl, Rung::Rollback]);
    assert_eq!(guard.interventions, 5);
    // Going back ends everything but the smaller learning rate.
    assert_eq!(guard.effects, Effects { lr_scale: 0.5 * 0.4, ..Effects::default() });
}

#[test]
fn entropy_is_pushed_against_its_direction() {
    let setting = Setting { ladder: vec![Rung::Entropy], ..setting(GuardMode::Act) };
    for (entropy, positive) in [(0.01, true), (4.0, false)] {
        let mut guard = after_well(20, &setting);
        let now = Observation { entropy: Some(entropy), reward_std: Some(0.1), ..well() };
        while guard.interventions == 0 {
            guard.observe(&now, &setting);
        }
        assert_eq!(guard.effects.entropy_coeff > 0.0, positive);
    }
}

#[test]
fn a_deep_fall_goes_back_at_once_and_recovers() {
    let setting = setting(GuardMode::Act);
    let mut guard = after_well(20, &setting);
    let mut decision = Decision::default();
    while !decision.rollback {
        decision = guard.observe(&fallen(), &setting);
    }
    assert_eq!((guard.rollbacks, guard.health), (1, Health::Intervening));
    assert_eq!(decision.changes.last().unwrap().action, Some(Rung::Rollback));
    let recovered = until_change(&mut guard, &well(), &setting);
    assert_eq!(recovered.changes[0].to, Health::Recovered);
    assert_eq!(until_change(&mut guard, &well(), &setting).changes[0].to, Health::Healthy);
    assert_eq!(guard.effects.lr_scale, 0.4);
}

#[test]
fn a_run_that_falls_again_and_again_is_stopped() {
    let setting = Setting { max_rollbacks: 2, ..setting(GuardMode::Act) };
    let mut guard = after_well(20, &setting);
    let mut stops = 0;
    for step in 0..200 {
        let now = if step % 12 < 6 { well() } else { fallen() };
        let decision = guard.observe(&now, &setting);
        stops += usize::from(decision.stop);
        assert!(!decision.stop || decision.rollback, "it ends at the healthy policy");
    }
    assert_eq!((stops, guard.rollbacks, guard.health), (1, 2, Health::Stopped));
}

#[test]
fn snapshots_are_taken_only_while_all_is_well() {
    let setting = setting(GuardMode::Act);
    let mut guard = Guard::default();
    let taken: Vec<bool> = (0..12).map(|_| guard.observe(&well(), &setting).snapshot).collect();
    assert_eq!(taken.iter().filter(|t| **t).count(), 3);
    assert!(taken[3] && taken[7] && taken[11]);
    for _ in 0..6 {
        assert!(!guard.observe(&fallen(), &setting).snapshot);
    }
}

#[test]
fn warnings_pass() {
    let setting = setting(GuardMode::Act);
    let mut guard = after_well(20, &setting);
    let one = Observation { grad_norm: Some(9.0), ..well() };
    assert!(guard.observe(&one, &setting).changes.is_empty(), "once is not enough");
    assert_eq!(guard.observe(&one, &setting).changes[0].to, Health::Warned);
    assert_eq!(until_change(&mut guard, &well(), &setting).changes[0].to, Health::Healthy);
    assert_eq!(guard.interventions, 0);
}

#[test]
fn a_guard_read_from_a_checkpoint_decides_the_same() {
    let setting = setting(GuardMode::Act);
    let mut whole = after_well(20, &setting);
    let mut resumed = whole.clone();
    for step in 0..60 {
        resumed = serde_json::from_str(&serde_json::to_string(&resumed).unwrap()).unwrap();
        let now = if step % 20 < 8 { fallen() } else { well() };
        assert_eq!(whole.observe(&now, &setting), resumed.observe(&now, &setting), "{step}");
    }
    assert_eq!(whole, resumed);
    assert!(whole.rollbacks > 0);
}

#[test]
fn events_say_what_and_why() {
    let setting = setting(GuardMode::Act);
    let mut guard = after_well(20, &setting);
    let decision = until_change(&mut guard, &early(), &setting);
    let details = decision.changes[0].details();
    assert_eq!((details["from"].as_str(), details["to"].as_str()), (Some("healthy"), Some("warned")));
    assert!(details["signals"].as_array().unwrap().contains(&serde_json::json!("reward_std")));
    assert!(details["reason"].as_str().unwrap().contains("spread of returns"));
}
