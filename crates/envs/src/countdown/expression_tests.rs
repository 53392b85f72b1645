use super::*;

fn int(text: &str) -> i128 {
    match evaluate(text) {
        Ok(Number::Int(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn real_value(text: &str) -> f64 {
    match evaluate(text) {
        Ok(Number::Float(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn precedence_and_association_are_python_s() {
    for (text, value) in [
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("10-4-3", 3),
        ("2**3**2", 512),
        ("-2**2", -4),
        ("(-2)**2", 4),
        ("2*-3", -6),
        ("--5", 5),
        ("~5", -6),
        ("-~5", 6),
        ("1|2^3&5", 1 | (2 ^ (3 & 5))),
        ("1<<2+1", 8),
        ("-7//2", -4),
        ("7//-2", -4),
        ("-7%3", 2),
        ("7%-3", -2),
        ("-6//2", -3),
        ("-8>>1", -4),
        ("-1>>500", -1),
        ("0x1F+0b11+0o17", 49),
        ("1_000", 1000),
        ("0", 0),
        ("000", 0),
        ("(1\n+2)\n", 3),
        (" \t7 # seven", 7),
        ("(-1)**99999999999", -1),
        ("0**0", 1),
    ] {
        assert_eq!(int(text), value, "{text}");
    }
    for (text, value) in [
        ("1/3", 1.0 / 3.0),
        ("6/2", 3.0),
        ("2**-1", 0.5),
        ("1.5+1", 2.5),
        ("1e3", 1000.0),
        ("2.", 2.0),
        (".5", 0.5),
        ("00.5", 0.5),
        ("7.5//2", 3.0),
        ("-7.5%2", 0.5),
        ("1e400", f64::INFINITY),
        ("2.0**0.5", std::f64::consts::SQRT_2),
    ] {
        assert_eq!(real_value(text), value, "{text}");
    }
}

#[test]
fn everything_else_is_an_error() {
    for text in [
        "",
        " ",
        "()",
        "(1",
        "1)",
        "1 2",
        "1,2",
        "1+",
        "*1",
        "02",
        "1__0",
        "1_",
        "0x",
        "0xg",
        "1e",
        "1.e+",
        ".",
        "1..2",
        "1.2.3",
        "2j",
        "1if 2 else 3",
        "1=1",
        "1==1",
        "1<2",
        "a",
        "abs(1)",
        "1/0",
        "1//0",
        "1%0",
        "0**-1",
        "1.0%0",
        "(-8)**0.5",
        "9**9**9",
        "1<<200",
        "1<<-1",
        "~1.0",
        "1.0|2",
        "1\n2",
        "１",
        "1\u{a0}+1",
        "2**1024.0",
        "not 1",
        "\"1\"",
        "1;",
        "[1]",
        "1 \\\n+1",
        "10.0**400",
    ] {
        assert!(evaluate(text).is_err(), "{text:?}: {:?}", evaluate(text));
    }
    assert!(evaluate(&"(".repeat(100_000)).is_err());
    assert!(evaluate(&"-".repeat(100_000)).is_err());
    assert!(evaluate(&format!("{}1{}", "(".repeat(150), ")".repeat(150))).is_ok());
}
