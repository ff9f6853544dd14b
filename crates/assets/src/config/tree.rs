//! YAML as a tree that remembers lines and columns, so that every problem of a file can be reported at once.
//!
//! The parser is a port of libyaml, as Go's is, so the same files are refused in the same words. What a file means is YAML 1.1 as
//! Go reads it: `yes` is true, `017` is 15, a second document is ignored.

use super::compose::{Composer, stopped};
use super::problem::{Mark, Problem};
use super::quiet::quietly;
use super::syntax;
use libyaml_safer::Parser;
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub value: Value,
    pub at: Mark,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub key_at: Mark,
    pub node: Node,
}

impl Value {
    /// The kind of value in Go's words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            Value::Text(_) => "string",
            Value::List(_) => "array",
            Value::Map(_) => "object",
        }
    }
}

impl Node {
    /// Where each field is, by path: its key, or for an item of a list the item.
    pub(super) fn places(&self) -> HashMap<String, Mark> {
        let mut places = HashMap::new();
        self.note("", &mut places);
        places
    }
    fn note(&self, path: &str, places: &mut HashMap<String, Mark>) {
        match &self.value {
            Value::Map(entries) => {
                for entry in entries {
                    let path = join(path, &entry.key);
                    places.insert(path.clone(), entry.key_at);
                    entry.node.note(&path, places);
                }
            }
            Value::List(items) => {
                for (i, node) in items.iter().enumerate() {
                    let path = format!("{path}[{i}]");
                    places.insert(path.clone(), node.at);
                    node.note(&path, places);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// The first document. A key given twice is a problem, but reading continues with the first.
pub(super) fn parse(text: &str) -> (Option<Node>, Vec<Problem>) {
    let text = text.trim_start_matches('\u{feff}');
    let mut source = text.to_string();
    // The port stumbles over a file that ends in the middle of an escape; any letter makes it the wrong escape it is.
    if source.ends_with('\\') {
        source.push('q');
    }
    let mut reader = source.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut reader);
    let mut composer = Composer::new(parser);
    // The port also has a hole where a tag meets a comma, as in `[!x,y]`. To Go the comma is a part of the tag, and so is the bracket.
    let ended = quietly(|| composer.document()).unwrap_or_else(|| {
        let at = tag_after(text, composer.last);
        let what = format!("line {}: did not find expected ',' or ']'", at.line);
        Err(Box::new(stopped(&what, Some(at)).hint("put a blank between a tag and the comma")))
    });
    match ended {
        Ok(node) => {
            let duplicates = duplicates(&composer.duplicates);
            (Some(node), duplicates.into_iter().collect())
        }
        Err(problem) => {
            let mut problem = *problem;
            let hint = syntax::hint(&problem.message, text, problem.at);
            problem.hint.get_or_insert_with(|| hint.into());
            (None, vec![problem])
        }
    }
}

/// The first tag from a place on.
fn tag_after(text: &str, from: Mark) -> Mark {
    let before = |line: u64, column: u64| (line, column) < (from.line, from.column);
    let tags = text.lines().zip(1..).flat_map(|(line, number)| {
        let columns = line.chars().zip(1..).filter(|(c, _)| *c == '!');
        columns.map(move |(_, column)| Mark { line: number, column }).collect::<Vec<_>>()
    });
    tags.into_iter().find(|at| !before(at.line, at.column)).unwrap_or(from)
}

fn duplicates(found: &[(String, Mark)]) -> Option<Problem> {
    let (_, first) = found.first()?;
    let lines: Vec<_> =
        found.iter().map(|(key, at)| format!("\n  line {}: key {key} already set in map", at.line)).collect();
    let mut problem = *stopped(&format!("unmarshal errors:{}", lines.concat()), Some(*first));
    problem.hint = Some("keep one of the two".into());
    Some(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go's yaml answered; nothing if it took the text.
    #[test]
    fn refused_in_gos_words() {
        let cases = [
            ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
            ("a:\n  b: 1\n c: 2\n", "yaml: line 2: did not find expected key"),
            ("a: \"x\nb: 1\n", "yaml: line 3: found unexpected end of stream"),
            ("a: [1,2\nb: 1\n", "yaml: line 1: did not find expected ',' or ']'"),
            ("a: {x: 1\nb: 1\n", "yaml: line 1: did not find expected ',' or '}'"),
            ("z: 1\na: *foo\n", "yaml: unknown anchor 'foo' referenced"),
            ("- a\nb: 1\n", "yaml: line 1: did not find expected '-' indicator"),
            ("a: 1\n- b\n", "yaml: line 1: did not find expected key"),
            ("a\nb: 1\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("z: 1\na: @x\n", "yaml: line 2: found character that cannot start any token"),
            ("z: 1\na: `x\n", "yaml: line 2: found character that cannot start any token"),
            ("z: 1\na: %x\n", "yaml: line 2: found character that cannot start any token"),
            ("a:\n- x\n b: 1\n", "yaml: line 3: mapping values are not allowed in this context"),
            ("z: 1\na: 'x\n", "yaml: line 3: found unexpected end of stream"),
            ("a: |\n x\nb\n", "yaml: line 4: could not find expected ':'"),
            ("? [1,2]\n: 3\n", "yaml: invalid map key: []interface {}{1, 2}"),
            ("a: !!foo x\n", ""),
            ("a: 1\nb: \u{1}\n", "yaml: control characters are not allowed"),
            ("key: value\n  other: x\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
            ("\ta: 1\n", "yaml: found character that cannot start any token"),
            ("a: 1\n\tb: 2\n", "yaml: line 2: found a tab character that violates indentation"),
            ("{a: 1}}\n", ""),
            ("a: 1\nb\n", "yaml: line 3: could not find expected ':'"),
            ("a:\n  - b\n  c: 1\n", "yaml: line 2: did not find expected '-' indicator"),
            ("a: \"x\" y\nb: 1\n", "yaml: did not find expected key"),
            ("a: \"\\q\"\nb: 1\n", "yaml: found unknown escape character"),
            ("a: 1\n b: 2\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("a: 1\n--- \nb: [\n", ""),
            ("a: [1, 2]]\nb: 1\n", "yaml: did not find expected key"),
            ("a: {b: 1, c: }\nd: }\n", "yaml: line 1: did not find expected node content"),
            ("a: !<x y\n", "yaml: did not find the expected '>'"),
            ("a: &\n", "yaml: did not find expected alphabetic or numeric character"),
            ("a: *\n", "yaml: did not find expected alphabetic or numeric character"),
            ("a: >x\n b\n", "yaml: did not find expected comment or line break"),
            ("a: |0\n b\n", "yaml: found an indentation indicator equal to 0"),
            ("%YAML 2.0\n---\na: 1\n", "yaml: found incompatible YAML document"),
            ("%YAML 1.1\na: 1\n", "yaml: line 1: did not find expected <document start>"),
            ("a:\n\t- b\n", "yaml: line 2: found character that cannot start any token"),
            ("a: [\n1,\n2\n", "yaml: line 3: did not find expected ',' or ']'"),
            ("a: - b\n", "yaml: block sequence entries are not allowed in this context"),
            ("a:b\nc: d\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("a: 1\nb: 2 : 3\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("a: x\n  y: z\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("foo: bar\nbaz\nqux: 1\n", "yaml: line 3: could not find expected ':'"),
            ("a: [a, b: c, d]\n", ""),
            ("a: {,}\n", "yaml: did not find expected node content"),
            ("a: ]\n", "yaml: did not find expected node content"),
            ("x:\n  a: 1\n   b: 2\n", "yaml: line 3: mapping values are not allowed in this context"),
            ("x:\n  - a: 1\n   b: 2\n", "yaml: line 2: did not find expected '-' indicator"),
            ("x:\n  - a: 1\n b: 2\n", "yaml: line 2: did not find expected key"),
            ("pullSecret: '{\"auths\"': 1\n", "yaml: mapping values are not allowed in this context"),
            ("a: 'it's'\n", "yaml: did not find expected key"),
            ("a: \"say \"hi\"\"\n", "yaml: did not find expected key"),
            ("<<<<<<< HEAD\na: 1\n", "yaml: line 2: mapping values are not allowed in this context"),
            ("{\"a\": 1,\n \"b\": 2\n", "yaml: line 2: did not find expected ',' or '}'"),
            ("{\"a\": 1\n \"b\": 2}\n", "yaml: line 1: did not find expected ',' or '}'"),
        ];
        for (text, want) in cases {
            let (_, problems) = parse(text);
            let got = problems
                .first()
                .map_or("", |p| p.message.trim_start_matches("error converting YAML to JSON: "));
            assert_eq!(got, want, "{text:?}");
        }
    }

    #[test]
    fn places_are_kept() {
        let (node, problems) = parse("a: 1\nb:\n  c:\n  - d: x\n  - d: y\n---\nother: [\n");
        let places = node.map(|node| node.places()).unwrap_or_default();
        assert_eq!(
            (places["a"], places["b.c[1].d"]),
            (Mark { line: 1, column: 1 }, Mark { line: 5, column: 5 })
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn duplicates_are_told_and_reading_goes_on() {
        let (node, problems) = parse("x: 1\nx: 2\ny: 1\ny:\n  z: 3\n");
        assert!(node.is_some());
        let want = "yaml: unmarshal errors:\n  line 2: key \"x\" already set in map\n  line 5: key true already set in map";
        assert!(problems[0].message.ends_with(want), "{problems:?}");
    }

    #[test]
    fn anchors_merges_and_their_limits() {
        let (node, problems) = parse("a: &a {x: 1}\nb:\n  <<: *a\n  z: 2\n");
        let places = node.map(|node| node.places()).unwrap_or_default();
        assert!(problems.is_empty() && places.contains_key("b.x") && places.contains_key("b.z"));
        let (_, problems) = parse("a: &a {x: 1}\nb:\n  <<: *a\n  x: 2\n");
        assert!(problems[0].message.ends_with("line 4: key \"x\" already set in map"), "{problems:?}");
        let bomb: String = (0..9).fold("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".into(), |text, i| {
            let many = vec![format!("*a{i}"); 10].join(",");
            format!("{text}a{}: &a{} [{many}]\n", i + 1, i + 1)
        });
        assert!(parse(&bomb).1[0].message.contains("excessive aliasing"));
        assert!(parse(&"[".repeat(100_000)).1[0].message.contains("max depth"));
        assert!(parse("a: \"x\\").1[0].message.contains("found unknown escape character"));
        for (text, line) in [("a: [!x,y]", 1), ("a: 1\nb: [!x,y]\nc: 2\n", 2)] {
            let (node, problems) = parse(text);
            let want = format!("yaml: line {line}: did not find expected ',' or ']'");
            assert!(node.is_none() && problems[0].message.ends_with(&want), "{problems:?}");
            assert_eq!(problems[0].at.map(|at| (at.line, at.column)), Some((line, 5)));
        }
    }
}
