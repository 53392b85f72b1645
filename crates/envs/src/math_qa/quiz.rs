//! One question that stays open until it is answered right: what the question-answering environments share.

use crate::{DemoStyle, Demonstration, Info, Step};

/// Words of a brief demonstration.
const BRIEF_WORDS: usize = 12;

/// A question, its answer, and how the answer comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// What is asked.
    pub text: String,
    /// The expected answer.
    pub answer: String,
    /// A worked solution in words, without the answer's mark; empty when there is none.
    pub solution: String,
}

impl Question {
    pub fn new(text: &str, answer: &str, solution: &str) -> Self {
        Self { text: text.trim().to_owned(), answer: answer.to_owned(), solution: without_calculations(solution) }
    }
}

/// GSM8K writes calculations for a calculator inside `<<` and `>>`; the reader needs none of them.
fn without_calculations(solution: &str) -> String {
    let mut out = String::with_capacity(solution.len());
    let mut rest = solution;
    while let Some((before, after)) = rest.split_once("<<") {
        out.push_str(before);
        match after.split_once(">>") {
            Some((_, after)) => rest = after,
            None => {
                out.push_str("<<");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// An episode: attempts at a question.
#[derive(Clone, Debug)]
pub(crate) struct Quiz {
    question: Question,
    /// The question is part of every open state, not only of the first.
    repeats: bool,
    attempts: i32,
    solved: bool,
}

impl Quiz {
    pub fn new(question: Question, repeats: bool) -> Self {
        Self { question, repeats, attempts: 0, solved: false }
    }

    pub fn answer(&self) -> &str {
        &self.question.answer
    }

    pub fn solved(&self) -> bool {
        self.solved
    }

    /// Takes an answer; the first attempt pays 1 when it is right, every later one half of the one before.
    pub fn answered(&mut self, right: bool) -> Step {
        let reward = if right { 0.5f64.powi(self.attempts) } else { 0.0 };
        self.attempts = self.attempts.saturating_add(1);
        self.solved = right;
        let mut info = Info { success: right, action_is_valid: true, action_is_effective: true, ..Info::default() };
        info.extra.insert("attempts".to_owned(), f64::from(self.attempts));
        Step { observation: self.render(), reward, terminated: right, truncated: false, info }
    }

    pub fn render(&self) -> String {
        const WRONG: &str = "That is not the answer. Think again.";
        match (self.solved, self.attempts, self.repeats) {
            (true, ..) => "That is right.".to_owned(),
            (false, 0, _) => self.question.text.clone(),
            (false, _, true) => format!("{}\n{WRONG}", self.question.text),
            (false, _, false) => WRONG.to_owned(),
        }
    }

    /// Identifies the state: the question, the attempts, whether it is solved.
    pub fn key(&self) -> String {
        let Question { text, answer, .. } = &self.question;
        format!("{text}\n= {answer}\n{} {}", self.attempts, self.solved)
    }

    pub fn oracle(&self, actions_left: usize) -> Vec<String> {
        let open = !self.solved && actions_left > 0 && !self.question.answer.trim().is_empty();
        if open { vec![self.question.answer.clone()] } else { Vec::new() }
    }

    pub fn optimum(&self, actions_left: usize) -> f64 {
        if self.solved || !self.oracle(actions_left).is_empty() { 1.0 } else { 0.0 }
    }

    /// The worked solution, or the end of its last line where few words are wanted.
    pub fn demonstrate(&self, actions: usize, style: DemoStyle) -> Option<Demonstration> {
        let actions = self.oracle(actions);
        let answer = actions.first()?;
        let solution = self.question.solution.trim();
        let reasoning = match style {
            _ if solution.is_empty() => format!("The answer to this is {answer}."),
            DemoStyle::Verbose => solution.to_owned(),
            DemoStyle::Brief => {
                let words: Vec<&str> = solution.lines().last().unwrap_or_default().split_whitespace().collect();
                words[words.len().saturating_sub(BRIEF_WORDS)..].join(" ")
            }
        };
        Some(Demonstration { reasoning, actions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_halve_with_every_attempt() {
        let mut quiz = Quiz::new(Question::new("1 + 1?", "2", "1 + 1 = <<1+1=2>>2"), true);
        assert_eq!(quiz.render(), "1 + 1?");
        let rewards: Vec<f64> = [false, false, true].into_iter().map(|right| quiz.answered(right).reward).collect();
        assert_eq!(rewards, [0.0, 0.0, 0.25]);
        assert!(quiz.solved() && quiz.oracle(5).is_empty() && quiz.optimum(0) == 1.0);
    }

    #[test]
    fn the_question_comes_back_unless_it_should_not() {
        for (repeats, shown) in [(true, "1 + 1?\nThat is not"), (false, "That is not")] {
            let mut quiz = Quiz::new(Question::new("1 + 1?", "2", ""), repeats);
            assert!(quiz.answered(false).observation.starts_with(shown));
        }
    }

    #[test]
    fn demonstrations_read_like_the_solution() {
        let solution = "It is 3 * 4 = <<3*4=12>>12.\nSo there are a b c d e f g h i 12 of them.";
        let quiz = Quiz::new(Question::new("How many?", "12", solution), true);
        let brief = quiz.demonstrate(1, DemoStyle::Brief).expect("a turn");
        assert_eq!(
            (brief.reasoning.as_str(), brief.actions.as_slice()),
            ("a b c d e f g h i 12 of them.", &["12".to_owned()][..])
        );
        let long = quiz.demonstrate(1, DemoStyle::Verbose).expect("a turn");
        assert!(long.reasoning.starts_with("It is 3 * 4 = 12.\nSo"), "{}", long.reasoning);
        assert!(quiz.demonstrate(0, DemoStyle::Brief).is_none());
        assert_eq!(without_calculations("a << b"), "a << b");
    }
}
