//! What a YAML 1.1 scalar means, as Go's yaml.v2 decides.

use base64::{Engine, engine::general_purpose::STANDARD};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
}

const TRUE: &[&str] = &["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"];
const FALSE: &[&str] = &["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"];
const NULL: &[&str] = &["", "~", "null", "Null", "NULL"];
const CORE: &str = "tag:yaml.org,2002:";

pub(super) fn resolve(tag: Option<&str>, text: String, plain: bool) -> Result<Scalar, String> {
    let Some(tag) = tag.filter(|tag| !tag.is_empty()) else {
        return Ok(if plain { implicit(&text) } else { Scalar::Text(text) });
    };
    let implied = implicit(&text);
    match (tag.strip_prefix(CORE), implied) {
        (Some("int"), found @ Scalar::Int(_))
        | (Some("float"), found @ Scalar::Float(_))
        | (Some("bool"), found @ Scalar::Bool(_))
        | (Some("null"), found @ Scalar::Null) => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "that is what the tag asks for")]
        (Some("float"), Scalar::Int(number)) => Ok(Scalar::Float(number as f64)),
        (Some("binary"), _) => STANDARD
            .decode(text.replace(['\n', ' '], ""))
            .map(|bytes| Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
            .map_err(|_| "!!binary value contains invalid base64 data".into()),
        (Some(wanted @ ("int" | "float" | "bool" | "null")), found) => {
            Err(format!("cannot decode !!{} `{text}` as a !!{wanted}", name(&found)))
        }
        _ => Ok(Scalar::Text(text)),
    }
}

fn name(scalar: &Scalar) -> &'static str {
    match scalar {
        Scalar::Null => "null",
        Scalar::Bool(_) => "bool",
        Scalar::Int(_) => "int",
        Scalar::Float(_) => "float",
        Scalar::Text(_) => "str",
    }
}

fn implicit(text: &str) -> Scalar {
    let is = |words: &[&str]| words.contains(&text);
    if is(NULL) {
        return Scalar::Null;
    }
    if is(TRUE) || is(FALSE) {
        return Scalar::Bool(is(TRUE));
    }
    if let Some(special) = special(text) {
        return Scalar::Float(special);
    }
    let plain = text.replace('_', "");
    if text.starts_with(['+', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        if let Some(number) = integer(&plain) {
            return Scalar::Int(number);
        }
    } else if !text.starts_with('.') {
        return Scalar::Text(text.into());
    }
    match plain.parse() {
        Ok(number) if is_float(&plain) => Scalar::Float(number),
        _ => Scalar::Text(text.into()),
    }
}

fn special(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => None,
    }
}

/// 64 bits, signed or not, with Go's prefixes: `0x`, `0o`, `0b`, and `0` for octal.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = sign * i128::from_str_radix(digits, radix).ok()?;
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

/// `[-+]? ( .digits | digits [. digits?] ) ( e [-+]? digits )?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_1_1() {
        let cases = [
            ("0o17", Scalar::Int(15)),
            ("017", Scalar::Int(15)),
            ("0x1f", Scalar::Int(31)),
            ("0b11", Scalar::Int(3)),
            ("-0x1", Scalar::Int(-1)),
            ("1_000", Scalar::Int(1000)),
            ("+1", Scalar::Int(1)),
            ("12345678901234567890", Scalar::Int(12_345_678_901_234_567_890)),
            ("yes", Scalar::Bool(true)),
            ("y", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            (".5", Scalar::Float(0.5)),
            ("1e3", Scalar::Float(1000.0)),
            ("1.", Scalar::Float(1.0)),
            ("~", Scalar::Null),
            ("1:30", Scalar::Text("1:30".into())),
            ("2001-01-01", Scalar::Text("2001-01-01".into())),
            ("10.0.0.0/16", Scalar::Text("10.0.0.0/16".into())),
            ("52:54:00", Scalar::Text("52:54:00".into())),
        ];
        for (text, want) in cases {
            assert_eq!(resolve(None, text.into(), true), Ok(want), "{text}");
        }
        assert_eq!(resolve(None, "yes".into(), false), Ok(Scalar::Text("yes".into())));
        let why = resolve(Some("tag:yaml.org,2002:int"), "x".into(), true);
        assert_eq!(why, Err("cannot decode !!str `x` as a !!int".into()));
    }
}
