//! YAML as a tree that remembers lines, so that every problem of a file can be reported at once.

use super::problem::{Problem, Step};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, Spanned};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    pub line: u64,
}

impl Value {
    /// The kind of value in Go's words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) => "number",
            Value::Text(_) => "string",
            Value::List(_) => "array",
            Value::Map(_) => "object",
        }
    }
}

impl Node {
    /// Line of each field, by path.
    pub fn lines(&self) -> BTreeMap<String, u64> {
        let mut lines = BTreeMap::new();
        self.note("", &mut lines);
        lines
    }
    fn note(&self, path: &str, lines: &mut BTreeMap<String, u64>) {
        lines.insert(path.to_string(), self.line);
        match &self.value {
            Value::Map(fields) => {
                for (key, node) in fields {
                    node.note(&join(path, key), lines);
                }
            }
            Value::List(items) => {
                for (i, node) in items.iter().enumerate() {
                    node.note(&format!("{path}[{i}]"), lines);
                }
            }
            _ => {}
        }
    }
}

pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// The first document; further ones are ignored, as upstream does. A duplicate key is a problem, but reading goes on.
pub fn parse(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    let text = text.trim_start_matches('\u{feff}');
    let snippet = match read(text, DuplicateKeyPolicy::Error) {
        Ok(node) => return node,
        Err(error) => error,
    };
    let error = snippet.without_snippet();
    let line = error.location().map(|l| l.line());
    let at = line.unwrap_or_default();
    let (what, duplicate) = match &error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or_default();
            (format!("yaml: unmarshal errors:\n  line {at}: key {key:?} already set in map"), true)
        }
        other => {
            (format!("yaml: line {at}: {}", other.to_string().lines().next().unwrap_or_default()), false)
        }
    };
    let hint = if duplicate {
        "keep one of the two"
    } else {
        "check indentation and quotes; tabs cannot indent YAML"
    };
    let mut problem =
        Problem::new(Step::Unmarshal, "", format!("error converting YAML to JSON: {what}")).hint(hint);
    problem.line = line;
    problems.push(problem);
    if duplicate { read(text, DuplicateKeyPolicy::LastWins).ok().flatten() } else { None }
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Option<Node>, Error> {
    let options = serde_saphyr::options! { duplicate_keys: duplicate_keys };
    let documents: Vec<Spanned<Value>> = serde_saphyr::from_multiple_with_options(text, options)?;
    Ok(documents.into_iter().next().map(Node::from))
}

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Node { line: spanned.referenced.line(), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any YAML value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Spanned<Value>>()? {
            items.push(item.into());
        }
        Ok(Value::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Spanned<Value>>()? {
            fields.push((key, value.into()));
        }
        Ok(Value::Map(fields))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept() {
        let mut problems = vec![];
        let node = parse("a: 1\nb:\n  c:\n  - d: x\n  - d: y\n---\nother: 1\n", &mut problems).unwrap();
        let lines = node.lines();
        assert_eq!((lines["a"], lines["b.c[1].d"], problems.len()), (1, 5, 0));
    }

    #[test]
    fn a_duplicate_key_is_reported_and_reading_goes_on() {
        let mut problems = vec![];
        assert!(parse("a: 1\nb: 2\na: 3\n", &mut problems).is_some());
        assert_eq!(problems[0].line, Some(3));
        assert!(problems[0].message.contains("line 3: key \"a\" already set in map"), "{problems:?}");
    }

    #[test]
    fn a_tab_is_an_error_with_its_line() {
        let mut problems = vec![];
        assert!(parse("a:\n\tb: 1\n", &mut problems).is_none());
        assert_eq!(problems[0].line, Some(2), "{problems:?}");
    }
}
