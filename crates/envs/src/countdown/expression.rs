//! Arithmetic as Python evaluates it: what RAGEN's `eval` accepts of numbers and operators, and nothing else.
//!
//! Integers in every base with underscores, floats, `+ - * / // % **`, `<< >> & | ^ ~`, signs, parentheses and comments,
//! with Python's precedence and rounding. Names, calls, comparisons and everything else are errors. Integers are of 128
//! bits; where Python's would be longer this is an error too.

use std::iter::Peekable;
use std::str::Chars;

/// Nesting beyond this is refused, as in CPython's parser.
const MAX_DEPTH: usize = 200;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i128),
    /// A double.
    Float(f64),
}

/// Why a text has no value; one line for people.
pub type Fault = &'static str;

/// The value of an expression.
///
/// # Errors
/// Text that is not such an expression, division by zero, a number beyond its type, a complex result.
pub fn evaluate(text: &str) -> Result<Number, Fault> {
    // Python's `eval` drops blanks before the expression; a line break after it is allowed.
    let tokens = tokens(text.trim_start_matches([' ', '\t']))?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let value = parser.binary(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err("something follows the expression"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Number(Number),
    Op(Op),
    Tilde,
    Open,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Or,
    Xor,
    And,
    Left,
    Right,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

/// Binary operators by precedence, loosest first; all of them associate to the left. `**` stands apart.
const LEVELS: [&[Op]; 6] = [
    &[Op::Or],
    &[Op::Xor],
    &[Op::And],
    &[Op::Left, Op::Right],
    &[Op::Add, Op::Sub],
    &[Op::Mul, Op::Div, Op::FloorDiv, Op::Mod],
];

fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut chars = text.chars().peekable();
    let (mut found, mut open, mut ended) = (Vec::new(), 0usize, false);
    while let Some(&c) = chars.peek() {
        if c == '#' {
            while chars.next_if(|&c| c != '\n').is_some() {}
            continue;
        }
        if matches!(c, ' ' | '\t' | '\u{c}') {
            chars.next();
            continue;
        }
        if matches!(c, '\n' | '\r') {
            // Within parentheses lines are joined; elsewhere a line break ends the expression.
            ended |= open == 0;
            chars.next();
            continue;
        }
        if ended {
            return Err("a second line");
        }
        if c.is_ascii_digit() || c == '.' {
            found.push(Token::Number(number(&mut chars)?));
            continue;
        }
        chars.next();
        let mut twice = |double: Op, single: Option<Op>| match chars.next_if_eq(&c) {
            Some(_) => Ok(Token::Op(double)),
            None => single.map(Token::Op).ok_or("an operator that does not exist"),
        };
        found.push(match c {
            '+' => Token::Op(Op::Add),
            '-' => Token::Op(Op::Sub),
            '*' => twice(Op::Pow, Some(Op::Mul))?,
            '/' => twice(Op::FloorDiv, Some(Op::Div))?,
            '<' => twice(Op::Left, None)?,
            '>' => twice(Op::Right, None)?,
            '%' => Token::Op(Op::Mod),
            '&' => Token::Op(Op::And),
            '|' => Token::Op(Op::Or),
            '^' => Token::Op(Op::Xor),
            '~' => Token::Tilde,
            '(' => {
                open += 1;
                Token::Open
            }
            ')' => {
                open = open.saturating_sub(1);
                Token::Close
            }
            _ => return Err("a character that belongs to no number or operator"),
        });
    }
    Ok(found)
}

/// Digits with single underscores between them, copied without the underscores.
fn digits(chars: &mut Peekable<Chars<'_>>, radix: u32, into: &mut String) -> Result<(), Fault> {
    let (mut after_digit, mut dangling) = (false, false);
    while let Some(&c) = chars.peek() {
        if c.is_digit(radix) {
            into.push(c);
            (after_digit, dangling) = (true, false);
        } else if c == '_' && after_digit && !dangling {
            dangling = true;
        } else {
            break;
        }
        chars.next();
    }
    if dangling { Err("an underscore at the end of a number") } else { Ok(()) }
}

fn number(chars: &mut Peekable<Chars<'_>>) -> Result<Number, Fault> {
    let mut text = String::new();
    if chars.next_if_eq(&'0').is_some() {
        text.push('0');
        let radix = match chars.peek() {
            Some('x' | 'X') => 16,
            Some('o' | 'O') => 8,
            Some('b' | 'B') => 2,
            _ => 0,
        };
        if radix > 0 {
            chars.next();
            chars.next_if_eq(&'_');
            text.clear();
            digits(chars, radix, &mut text)?;
            let value = i128::from_str_radix(&text, radix).map_err(|_| "not a whole number of that base")?;
            return end_of_number(chars, Number::Int(value));
        }
        if chars.next_if_eq(&'_').is_some() && !chars.peek().is_some_and(char::is_ascii_digit) {
            return Err("an underscore at the end of a number");
        }
    }
    digits(chars, 10, &mut text)?;
    let whole = text.len();
    if chars.next_if_eq(&'.').is_some() {
        text.push('.');
        let mut fraction = String::new();
        digits(chars, 10, &mut fraction)?;
        if whole == 0 && fraction.is_empty() {
            return Err("a dot without digits");
        }
        text.push_str(&fraction);
    }
    if chars.next_if(|c| matches!(c, 'e' | 'E')).is_some() {
        text.push('e');
        text.extend(chars.next_if(|c| matches!(c, '+' | '-')));
        let mut exponent = String::new();
        digits(chars, 10, &mut exponent)?;
        if exponent.is_empty() {
            return Err("an exponent without digits");
        }
        text.push_str(&exponent);
    }
    let value = if text.len() == whole {
        if text.starts_with('0') && text.contains(|c| c != '0') {
            return Err("a whole number with a leading zero");
        }
        Number::Int(text.parse().map_err(|_| "a number beyond 128 bits")?)
    } else {
        Number::Float(text.parse().map_err(|_| "not a number")?)
    };
    end_of_number(chars, value)
}

/// No letter, digit or underscore may follow a number.
fn end_of_number(chars: &mut Peekable<Chars<'_>>, value: Number) -> Result<Number, Fault> {
    match chars.peek() {
        Some(c) if c.is_alphanumeric() || matches!(c, '_' | '.') => Err("a number runs into something else"),
        _ => Ok(value),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err("nested too deeply") } else { Ok(()) }
    }

    /// An expression of the operators from this level on.
    fn binary(&mut self, level: usize) -> Result<Number, Fault> {
        let Some(ops) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut value = self.binary(level + 1)?;
        while let Some(Token::Op(op)) = self.peek() {
            if !ops.contains(&op) {
                break;
            }
            self.at += 1;
            let right = self.binary(level + 1)?;
            value = apply(op, value, right)?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Result<Number, Fault> {
        let sign = match self.peek() {
            Some(Token::Op(op @ (Op::Add | Op::Sub))) => Some(op),
            Some(Token::Tilde) => None,
            _ => return self.power(),
        };
        self.at += 1;
        self.deeper()?;
        let value = self.unary()?;
        self.depth -= 1;
        match (sign, value) {
            (Some(Op::Sub), Number::Int(value)) => value.checked_neg().map(Number::Int).ok_or(TOO_LARGE),
            (Some(Op::Sub), Number::Float(value)) => Ok(Number::Float(-value)),
            (Some(_), value) => Ok(value),
            (None, Number::Int(value)) => Ok(Number::Int(!value)),
            (None, Number::Float(_)) => Err("bits of a float"),
        }
    }

    /// `**` binds tighter than a sign on its left and looser than one on its right, and associates to the right.
    fn power(&mut self) -> Result<Number, Fault> {
        let base = self.atom()?;
        if !self.take(Token::Op(Op::Pow)) {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.unary()?;
        self.depth -= 1;
        apply(Op::Pow, base, exponent)
    }

    fn atom(&mut self) -> Result<Number, Fault> {
        match self.peek() {
            Some(Token::Number(value)) => {
                self.at += 1;
                Ok(value)
            }
            Some(Token::Open) => {
                self.at += 1;
                self.deeper()?;
                let value = self.binary(0)?;
                self.depth -= 1;
                if self.take(Token::Close) { Ok(value) } else { Err("a parenthesis is not closed") }
            }
            _ => Err("a number is missing"),
        }
    }
}

const TOO_LARGE: Fault = "a number beyond 128 bits";
const DIVISION_BY_ZERO: Fault = "division by zero";

fn apply(op: Op, a: Number, b: Number) -> Result<Number, Fault> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => whole(op, a, b),
        _ => real(op, float(a), float(b)).map(Number::Float),
    }
}

fn float(value: Number) -> f64 {
    match value {
        Number::Int(value) => value as f64,
        Number::Float(value) => value,
    }
}

fn whole(op: Op, a: i128, b: i128) -> Result<Number, Fault> {
    let shift = || u32::try_from(b).map_err(|_| "a shift by a negative or huge number");
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div | Op::FloorDiv | Op::Mod if b == 0 => return Err(DIVISION_BY_ZERO),
        Op::Div => return Ok(Number::Float(a as f64 / b as f64)),
        // Rounded towards minus infinity; the remainder has the divisor's sign.
        Op::FloorDiv => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        Op::Mod => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        Op::Pow if b < 0 && a == 0 => return Err(DIVISION_BY_ZERO),
        Op::Pow if b < 0 => return real(op, a as f64, b as f64).map(Number::Float),
        Op::Pow => match a {
            0 | 1 => Some(if b == 0 { 1 } else { a }),
            -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        },
        Op::Or => Some(a | b),
        Op::Xor => Some(a ^ b),
        Op::And => Some(a & b),
        Op::Left => match shift()? {
            _ if a == 0 => Some(0),
            by if by < 127 => a.checked_mul(1 << by),
            _ => None,
        },
        Op::Right => Some(a >> shift()?.min(127)),
    };
    result.map(Number::Int).ok_or(TOO_LARGE)
}

fn real(op: Op, a: f64, b: f64) -> Result<f64, Fault> {
    match op {
        Op::Div | Op::FloorDiv | Op::Mod if b == 0.0 => return Err(DIVISION_BY_ZERO),
        Op::Pow if a == 0.0 && b < 0.0 => return Err(DIVISION_BY_ZERO),
        Op::Pow if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 => return Err("a complex number"),
        _ => {}
    }
    // CPython's remainder and floor of floats.
    let remainder = || {
        let r = a % b;
        if r != 0.0 && (b < 0.0) != (r < 0.0) { r + b } else { r }
    };
    let result = match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Mod => remainder(),
        Op::FloorDiv => {
            let quotient = (a - remainder()) / b;
            let floor = quotient.floor();
            if quotient - floor > 0.5 { floor + 1.0 } else { floor }
        }
        Op::Pow => a.powf(b),
        Op::Or | Op::Xor | Op::And | Op::Left | Op::Right => return Err("bits of a float"),
    };
    if op == Op::Pow && result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err("a number beyond double precision");
    }
    Ok(result)
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
