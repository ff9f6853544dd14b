//! The pull secret: JSON with credentials, checked as Go's decoder would. The value itself is never repeated.

use super::text::aggregate;
use serde_json::Value;

pub(super) fn check(secret: &str) -> Result<(), String> {
    syntax(secret.as_bytes())?;
    let parsed: Value = serde_json::from_str(secret).map_err(|e| e.to_string())?;
    let object = match &parsed {
        Value::Object(object) => object,
        Value::Null => return Err("auths required".into()),
        other => {
            let kind = kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type validate.imagePullSecret"
            ));
        }
    };
    let auths = object.iter().rfind(|(key, _)| key.eq_ignore_ascii_case("auths")).map(|(_, value)| value);
    let wrong = |value: &Value, go: &str| {
        let kind = kind(value);
        Err(format!("json: cannot unmarshal {kind} into Go struct field imagePullSecret.auths of type {go}"))
    };
    let auths = match auths {
        None | Some(Value::Null) => return Err("auths required".into()),
        Some(Value::Object(auths)) => auths,
        Some(other) => return wrong(other, "map[string]map[string]interface {}"),
    };
    if auths.is_empty() {
        return Err("auths required".into());
    }
    if let Some(other) = auths.values().find(|entry| !matches!(entry, Value::Object(_) | Value::Null)) {
        return wrong(other, "map[string]interface {}");
    }
    let known = |entry: &Value| entry.get("auth").is_some() || entry.get("credsStore").is_some();
    let without = auths.iter().filter(|(_, entry)| !known(entry));
    aggregate(
        without
            .map(|(host, _)| format!("{} requires either auth or credsStore", super::go::quote(host)))
            .collect(),
    )
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// No pull secret is deeper.
const DEPTH: usize = 100;

/// The first character that JSON does not allow, in Go's words.
fn syntax(text: &[u8]) -> Result<(), String> {
    let mut scan = Scan { text, at: 0 };
    scan.value("looking for beginning of value", 0)?;
    scan.blanks();
    if scan.at < text.len() { Err(scan.wrong("after top-level value")) } else { Ok(()) }
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
    /// Goes on if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }
    fn wrong(&self, context: &str) -> String {
        match self.peek() {
            Some(byte) => format!("invalid character {} {context}", super::go::rune(byte)),
            // At the end Go goes on as if there were a blank, which most places allow.
            None if context == "in string literal"
                || !context.starts_with("in ") && !context.starts_with("after decimal") =>
            {
                "unexpected end of JSON input".into()
            }
            None => format!("invalid character ' ' {context}"),
        }
    }
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, context: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err("exceeded max depth".into());
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.members(depth),
            Some(b'[') => self.items(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(self.wrong(context)),
        }
    }

    fn members(&mut self, depth: usize) -> Result<(), String> {
        const KEY: &str = "looking for beginning of object key string";
        self.at += 1;
        self.blanks();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.wrong(KEY));
            }
            self.string()?;
            self.blanks();
            if !self.take(b':') {
                return Err(self.wrong("after object key"));
            }
            self.value("looking for beginning of value", depth + 1)?;
            self.blanks();
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.wrong("after object key:value pair"));
            }
        }
    }

    fn items(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.blanks();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value("looking for beginning of value", depth + 1)?;
            self.blanks();
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.wrong("after array element"));
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            if self.take(b'"') {
                return Ok(());
            }
            if self.take(b'\\') {
                self.escape()?;
                continue;
            }
            match self.peek() {
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.wrong("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.wrong("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong("in string escape code")),
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.wrong(context));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits("in numeric literal")?;
        }
        if self.take(b'.') {
            self.digits("after decimal point in numeric literal")?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for letter in word.bytes() {
            if !self.take(letter) {
                return Err(self.wrong(&format!("in literal {word} (expecting {})", super::go::rune(letter))));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go 1.26 answered.
    #[test]
    fn as_go_reads_them() {
        let of = "json: cannot unmarshal";
        let cases = [
            ("", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("{\"a\":1.}", "invalid character '}' after decimal point in numeric literal"),
            ("{\"a\":01}", "invalid character '1' after object key:value pair"),
            ("{\"a\":-}", "invalid character '}' in numeric literal"),
            ("{\"a\":1e}", "invalid character '}' in exponent of numeric literal"),
            ("{\"a\":\"\\q\"}", "invalid character 'q' in string escape code"),
            ("{\"a\":\"\n\"}", "invalid character '\\n' in string literal"),
            ("{\"a\":\"\\u12\"}", "invalid character '\"' in \\u hexadecimal character escape"),
            ("{\"auths\":{},}", "invalid character '}' looking for beginning of object key string"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("'{}'", "invalid character '\\'' looking for beginning of value"),
            ("\u{feff}{}", "invalid character 'ï' looking for beginning of value"),
            ("null", "auths required"),
            ("{\"auths\":null}", "auths required"),
            ("{\"auths\":{}} ", "auths required"),
            ("{\"auths\":{\"a\":null}}", "\"a\" requires either auth or credsStore"),
            (
                "{\"auths\":{\"b\":{},\"a\":{}}}",
                "[\"b\" requires either auth or credsStore, \"a\" requires either auth or credsStore]",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(check(text), Err(want.to_string()), "{text:?}");
        }
        for (text, kind) in [("[]", "array"), ("\"x\"", "string"), ("1", "number"), ("true", "bool")] {
            assert_eq!(
                check(text),
                Err(format!("{of} {kind} into Go value of type validate.imagePullSecret"))
            );
        }
        let map = "Go struct field imagePullSecret.auths of type map[string]map[string]interface {}";
        assert_eq!(check("{\"auths\":[]}"), Err(format!("{of} array into {map}")));
        let entry = "Go struct field imagePullSecret.auths of type map[string]interface {}";
        assert_eq!(check("{\"auths\":{\"a\":1}}"), Err(format!("{of} number into {entry}")));
        assert_eq!(check("{\"auths\":{\"a\":{\"credsStore\":\"x\"}}}"), Ok(()));
    }
}
