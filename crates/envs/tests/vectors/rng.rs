//! Random streams against Python's and NumPy's.

use ragen_envs::rng::{NumpyGenerator, NumpyLegacy, Pcg64, PythonRandom, SeedSequence};
use serde_json::{Value, json};

fn cases(all: &Value, generator: &str) -> Vec<(u64, Value)> {
    let cases: Vec<(u64, Value)> = all[generator]
        .as_object()
        .unwrap_or_else(|| panic!("no {generator} in the vectors"))
        .iter()
        .map(|(seed, case)| (seed.parse().expect("a seed"), case.clone()))
        .collect();
    assert!(!cases.is_empty());
    cases
}

fn shuffled(rng: &mut PythonRandom) -> Vec<u64> {
    let mut deck: Vec<u64> = (0..12).collect();
    rng.shuffle(&mut deck);
    deck
}

fn repeat<T: Into<Value>>(n: usize, mut draw: impl FnMut() -> T) -> Value {
    Value::Array((0..n).map(|_| draw().into()).collect())
}

#[test]
fn python_random() {
    let Some(all) = super::fixtures::json("rng.json") else { return };
    for (seed, case) in cases(&all, "python_mt") {
        let mut rng = PythonRandom::new(seed);
        let got = json!({
            "random": repeat(5, || rng.random()),
            "getrandbits32": repeat(3, || rng.getrandbits(32)),
            "randint_1_6": repeat(8, || rng.randint(1, 6)),
            "shuffle12": shuffled(&mut rng),
            "sample4of10": rng.sample(10, 4),
            "sample5of100": rng.sample(100, 5),
            "choice7": repeat(6, || *rng.choice(&[0, 1, 2, 3, 4, 5, 6]).expect("an item")),
            "uniform_3_9": repeat(3, || rng.uniform(3.0, 9.0)),
            "sample50of1000_first10": (rng.sample(1000, 50)[..10]),
        });
        assert_eq!(got, case, "seed {seed}");
    }
}

#[test]
fn numpy_random_state() {
    let Some(all) = super::fixtures::json("rng.json") else { return };
    for (seed, case) in cases(&all, "numpy_randomstate") {
        let mut rng = NumpyLegacy::new(seed as u32);
        let got = json!({
            "randint": ([1, 2, 3, 5, 7, 10, 16, 17, 100, 1000].map(|n| rng.randint(n))),
            "random": repeat(4, || rng.random()),
            "permutation8": rng.permutation(8),
        });
        assert_eq!(got, case, "seed {seed}");
    }
}

#[test]
fn numpy_generator() {
    let Some(all) = super::fixtures::json("rng.json") else { return };
    for (seed, case) in cases(&all, "numpy_pcg64") {
        let mut rng = NumpyGenerator::new(seed);
        let mut bits = Pcg64::new(seed);
        let (state, inc) = bits.state();
        let got = json!({
            "random": repeat(4, || rng.random()),
            "integers4": repeat(6, || rng.integers(0, 4)),
            "integers_1_13": repeat(6, || rng.integers(1, 13)),
            "random2": repeat(2, || rng.random()),
            "choiceFH_p09": (0..12).map(|_| ["F", "H"][rng.choice_p(&[0.9, 0.1]).expect("weights")]).collect::<String>(),
            "integers_mixed": ([16, 15, 14, 3, 2, 1].map(|n| rng.integers(0, n))),
            "raw64": repeat(4, || bits.next_u64().to_string()),
            "state": state.to_string(),
            "inc": inc.to_string(),
            "seedseq_u64x4": SeedSequence::new(seed).generate_u64(4).iter().map(u64::to_string).collect::<Vec<_>>(),
        });
        assert_eq!(got, case, "seed {seed}");
    }
}
