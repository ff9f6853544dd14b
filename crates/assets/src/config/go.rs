//! How Go prints values: in messages that scripts match.

use super::tree::Value;
use serde::Serialize;
use std::fmt::Write;

/// `%q`.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\u{7}' => write!(quoted, "\\a"),
            '\u{8}' => write!(quoted, "\\b"),
            '\u{c}' => write!(quoted, "\\f"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            '\u{b}' => write!(quoted, "\\v"),
            c if c < ' ' || c == '\u{7f}' => write!(quoted, "\\x{:02x}", u32::from(c)),
            c if !printable(c) && u32::from(c) < 0x1_0000 => write!(quoted, "\\u{:04x}", u32::from(c)),
            c if !printable(c) => write!(quoted, "\\U{:08x}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted.push('"');
    quoted
}

/// Rust escapes what Go does not print either: controls, unassigned and invisible characters. Both leave letters and marks alone.
fn printable(c: char) -> bool {
    c == '\'' || c.escape_debug().len() == 1
}

/// A rune in single quotes, as the JSON decoder names a byte.
pub(super) fn rune(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".into(),
        b'"' => "'\"'".into(),
        byte => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// `%v` of a float64.
pub(super) fn float(number: f64) -> String {
    shortest(number, 21)
}

/// The fewest digits that say the same number; an exponent below -4 and from `limit` on. `strconv` turns to one at 6, `fmt` at 21.
pub(super) fn shortest(number: f64, limit: i32) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        }
        .into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..limit).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A float64 as `encoding/json` writes it.
pub(super) fn json_float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return shortest(number, -400).replace("e-0", "e-");
    }
    format!("{number}")
}

/// As `encoding/json` writes it; Go also escapes what could end a script tag.
pub(super) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// `%#v` of what a YAML value decodes to.
pub(super) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Text(text) => quote(text),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| syntax(&item.value)).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| format!("{}:{}", quote(&entry.key), syntax(&entry.node.value)))
                .collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", entries.join(", "))
        }
    }
}
