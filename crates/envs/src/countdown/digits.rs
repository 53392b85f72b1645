//! The whole numbers that occur in a text, as Python's `re.findall(r"\d+", text)` and `int` read them: any Unicode
//! decimal digit counts.

/// The code points of every zero among the Unicode decimal digits (category Nd); each begins a run of ten.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
    0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0,
    0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
    0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// The value of a decimal digit of any script.
pub(super) fn digit(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let code = u32::from(c);
    let zero = ZEROS.get(ZEROS.partition_point(|&zero| zero <= code).checked_sub(1)?)?;
    Some(code - zero).filter(|value| *value < 10)
}

/// Every maximal run of digits as a number, in order; `None` when one does not fit 128 bits.
pub(super) fn numbers_in(text: &str) -> Option<Vec<i128>> {
    let mut numbers = Vec::new();
    let mut open: Option<i128> = None;
    for c in text.chars() {
        match digit(c) {
            Some(value) => open = Some(open.unwrap_or(0).checked_mul(10)?.checked_add(i128::from(value))?),
            None => numbers.extend(open.take()),
        }
    }
    numbers.extend(open);
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_other_scripts_count() {
        assert_eq!(numbers_in("12+0034 x７８ ٤2²Ⅳ"), Some(vec![12, 34, 78, 42]));
        assert_eq!((numbers_in("no"), numbers_in(&"9".repeat(50))), (Some(vec![]), None));
        assert!(ZEROS.windows(2).all(|pair| pair[0] + 10 <= pair[1]));
    }
}
