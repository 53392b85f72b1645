//! Which reasoning texts are scored under which prompts.
//!
//! The prompt of a reasoning text is every token that it was sampled after, the forced opening tag included; the text is
//! what was sampled between the tags. Unlike the reference nothing is decoded and encoded again.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::episode::Episode;
use crate::evaluate::below;

/// Texts, prompts, and which prompt is each text's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pairs<'a> {
    /// The texts, none of them empty.
    pub texts: Vec<&'a [u32]>,
    /// The prompts.
    pub columns: Vec<&'a [u32]>,
    /// The column of each text's own prompt.
    pub own: Vec<usize>,
}

/// The reasoning of a turn: prompt and text.
fn thought(episode: &Episode, turn: usize) -> Option<(&[u32], &[u32])> {
    let range = episode.turns.get(turn)?.reasoning.clone()?;
    let text = episode.tokens.get(range.clone())?;
    (!text.is_empty()).then(|| (episode.context_of(range.start), text))
}

/// Turns with reasoning and turns in all.
pub(super) fn count(episodes: &[Episode]) -> (usize, usize) {
    let each = episodes.iter().flat_map(|e| (0..e.turns.len()).map(move |t| thought(e, t).is_some()));
    each.fold((0, 0), |(valid, all), is| (valid + usize::from(is), all + 1))
}

/// The first turn of at most `samples` episodes, drawn without replacement; columns are the groups' initial prompts.
/// `None` when members of a group have different prompts, which can not be measured this way.
pub(super) fn first_turns(episodes: &[Episode], samples: usize, seed: u64) -> Option<Pairs<'_>> {
    let mut valid: Vec<(usize, &[u32], &[u32])> =
        episodes.iter().filter_map(|e| thought(e, 0).map(|(x, z)| (e.group, x, z))).collect();
    if valid.len() > samples {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for i in 0..samples {
            let pick = i + below(&mut rng, (valid.len() - i) as u64) as usize;
            valid.swap(i, pick);
        }
        valid.truncate(samples);
    }
    let mut prompts: BTreeMap<usize, &[u32]> = BTreeMap::new();
    for (group, prompt, _) in &valid {
        if *prompts.entry(*group).or_insert(prompt) != *prompt {
            return None;
        }
    }
    let labels: Vec<usize> = prompts.keys().copied().collect();
    Some(Pairs {
        own: valid.iter().map(|(group, _, _)| labels.binary_search(group).unwrap_or_default()).collect(),
        texts: valid.into_iter().map(|(_, _, text)| text).collect(),
        columns: prompts.into_values().collect(),
    })
}

/// `samples` draws with replacement: an episode uniformly, then one of its turns with reasoning; draws of episodes
/// without any are lost. Every draw is a column of its own.
pub(super) fn trajectories(episodes: &[Episode], samples: usize, seed: u64) -> Pairs<'_> {
    let mut pairs = Pairs::default();
    if episodes.is_empty() {
        return pairs;
    }
    let draws = samples.min(episodes.iter().map(|e| e.turns.len()).sum());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..draws {
        let episode = &episodes[below(&mut rng, episodes.len() as u64) as usize];
        let valid: Vec<(&[u32], &[u32])> = (0..episode.turns.len()).filter_map(|t| thought(episode, t)).collect();
        if valid.is_empty() {
            continue;
        }
        let (prompt, text) = valid[below(&mut rng, valid.len() as u64) as usize];
        pairs.own.push(pairs.columns.len());
        pairs.columns.push(prompt);
        pairs.texts.push(text);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::fixtures::{episode, turn};

    fn thinking(group: usize, member: usize, turns: usize) -> Episode {
        let played: Vec<_> = (0..turns).map(|_| turn("s", 4, 0.0)).collect();
        let mut episode = episode(group, member, &played);
        episode.tokens[1] = 100 + group as u32;
        for turn in &mut episode.turns {
            turn.reasoning = Some(turn.response.start..turn.response.start + 2);
        }
        episode
    }

    #[test]
    fn first_turns_have_a_column_per_group() {
        let episodes = vec![thinking(3, 0, 2), thinking(3, 1, 1), thinking(5, 0, 1)];
        let pairs = first_turns(&episodes, 9, 0).unwrap();
        assert_eq!(pairs.own, [0, 0, 1]);
        assert_eq!(pairs.columns, [&[1, 103][..], &[1, 105]]);
        assert_eq!(pairs.texts, [&[10, 11]; 3]);
        let few = first_turns(&episodes, 2, 0).unwrap();
        assert_eq!(few.texts.len(), 2);
        assert_eq!(few, first_turns(&episodes, 2, 0).unwrap());
    }

    #[test]
    fn members_with_prompts_of_their_own_can_not_be_measured() {
        let mut episodes = vec![thinking(0, 0, 1), thinking(0, 1, 1)];
        episodes[1].tokens[0] = 7;
        assert_eq!(first_turns(&episodes, 9, 0), None);
    }

    #[test]
    fn trajectories_draw_turns_with_their_whole_past() {
        let episodes = vec![thinking(0, 0, 2), thinking(1, 0, 2)];
        let pairs = trajectories(&episodes, 100, 1);
        assert_eq!(pairs.texts.len(), 4, "no more draws than turns");
        assert_eq!(pairs.own, [0, 1, 2, 3]);
        assert!(pairs.columns.iter().any(|c| c.len() == 8), "a second turn has the first in its prompt");
        assert!(trajectories(&[], 5, 1).texts.is_empty());
    }

    #[test]
    fn turns_without_reasoning_are_counted_and_left_out() {
        let mut episodes = vec![thinking(0, 0, 2), thinking(1, 0, 1)];
        episodes[0].turns[1].reasoning = None;
        episodes[1].turns[0].reasoning = Some(2..2);
        assert_eq!(count(&episodes), (1, 3));
        assert_eq!(first_turns(&episodes, 9, 0).unwrap().texts.len(), 1);
        assert!(trajectories(&episodes, 50, 0).texts.len() <= 3);
    }
}
