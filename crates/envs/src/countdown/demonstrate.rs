//! Reasoning in words for a Countdown answer: the running sum.

use rand_core::Rng;

use super::Instance;
use super::instance::expression;
use crate::rng::index_below;
use crate::{DemoStyle, Demonstration};

/// Words for the answer that adds up `terms`.
pub(super) fn turn(instance: &Instance, terms: &[i64], style: DemoStyle, rng: &mut dyn Rng) -> Demonstration {
    let answer = expression(terms);
    let sums = running_sums(terms);
    let target = instance.target;
    let choice = index_below(rng, 3);
    let reasoning = match style {
        // As in Sokoban, brief words follow from the situation and never from chance.
        DemoStyle::Brief => sums.join(" "),
        DemoStyle::Verbose => {
            let steps = sums.join(", then ");
            match choice {
                0 => format!("I need {target}. Adding and subtracting the numbers, {steps}, which is the target."),
                1 => format!("Every number has to be used once. {steps}. So {answer} is worth {target}."),
                _ => format!("To reach {target} I try {answer}: {steps}. That is right."),
            }
        }
    };
    Demonstration { reasoning, actions: vec![answer] }
}

/// `44+19=63`, `63-35=28`, …
fn running_sums(terms: &[i64]) -> Vec<String> {
    let mut sum = terms.first().copied().unwrap_or(0);
    let mut steps = Vec::new();
    for term in terms.iter().skip(1) {
        let sign = if *term < 0 { '-' } else { '+' };
        steps.push(format!("{sum}{sign}{}={}", term.unsigned_abs(), sum + term));
        sum += term;
    }
    steps
}
