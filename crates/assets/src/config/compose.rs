//! From the parser's events to a tree: anchors, aliases, merged maps, and limits for what would fill the memory.

use super::problem::{FoundAt, Mark, Problem};
use super::scalar::{self, Scalar};
use super::tree::{Entry, Node, Value};
use super::{go, syntax};
use libyaml_safer::{ErrorKind, Event, EventData, Parser, ScalarStyle};
use std::collections::HashMap;

/// No install-config is deeper; what is would only fill the stack.
const DEPTH: usize = 100;
/// With every alias written out. A file that grows beyond this is meant to.
const NODES: usize = 100_000;

pub(super) fn stopped(what: &str, at: Option<Mark>) -> Box<Problem> {
    let message = format!("error converting YAML to JSON: yaml: {what}");
    let mut problem = Problem::new(FoundAt::Yaml, "", message);
    problem.at = at;
    Box::new(problem)
}

pub(super) type Found<T> = Result<T, Box<Problem>>;

pub(super) struct Composer<'r, 'b> {
    parser: Parser<&'r mut &'b [u8]>,
    anchors: HashMap<String, Node>,
    /// Anchors of collections that are not read to their end.
    open: Vec<String>,
    nodes: usize,
    /// Keys in Go's notation.
    pub duplicates: Vec<(String, Mark)>,
    /// Up to where the file is read.
    pub last: Mark,
}

impl<'r, 'b> Composer<'r, 'b> {
    pub(super) fn new(parser: Parser<&'r mut &'b [u8]>) -> Self {
        let last = Mark { line: 1, column: 1 };
        Self { parser, anchors: HashMap::new(), open: vec![], nodes: 0, duplicates: vec![], last }
    }

    pub(super) fn document(&mut self) -> Found<Node> {
        loop {
            let event = self.next()?;
            match event.data {
                EventData::StreamStart { .. } => {}
                EventData::DocumentStart { .. } => {
                    let first = self.next()?;
                    let node = self.node(first, 0)?;
                    // What follows in the same document is read, as upstream does; a next document is not.
                    self.next()?;
                    return Ok(node);
                }
                _ => return Ok(Node { value: Value::Null, at: mark(&event) }),
            }
        }
    }

    fn next(&mut self) -> Found<Event> {
        let read = self.parser.parse();
        if let Ok(event) = &read {
            self.last = mark(event);
        }
        read.map_err(|e| {
            // Go counts lines from 0, says nothing of line 0, and adds one for the scanner only.
            let line = |mark: Option<libyaml_safer::Mark>| mark.map(|m| m.line).filter(|line| *line > 0);
            let scanner = u64::from(e.kind() == ErrorKind::Scanner);
            let line = line(e.problem_mark()).map(|line| line + scanner).or_else(|| line(e.context_mark()));
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let start = e.context_mark().filter(|_| syntax::begins_earlier(e.problem()));
            let at = start.or(e.problem_mark()).map(|m| Mark { line: m.line + 1, column: m.column + 1 });
            stopped(&format!("{place}{}", e.problem()), at)
        })
    }

    fn node(&mut self, event: Event, depth: usize) -> Found<Node> {
        let at = mark(&event);
        self.count(1, at)?;
        if depth > DEPTH {
            return Err(stopped(&format!("exceeded max depth of {DEPTH}"), Some(at)));
        }
        let (anchor, value) = match event.data {
            EventData::Alias { anchor } => return self.alias(&anchor, at),
            EventData::Scalar { anchor, tag, value, style, .. } => {
                let plain = style == ScalarStyle::Plain;
                let resolved = scalar::resolve(tag.as_deref(), value, plain);
                let scalar = resolved.map_err(|why| stopped(&why, Some(at)))?;
                (anchor, scalar.into())
            }
            EventData::SequenceStart { anchor, .. } => {
                let value = self.collection(anchor.as_ref(), |this| this.list(depth))?;
                (anchor, value)
            }
            EventData::MappingStart { anchor, .. } => {
                let value = self.collection(anchor.as_ref(), |this| this.map(depth))?;
                (anchor, value)
            }
            _ => (None, Value::Null),
        };
        let node = Node { value, at };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn collection(
        &mut self,
        anchor: Option<&String>,
        read: impl FnOnce(&mut Self) -> Found<Value>,
    ) -> Found<Value> {
        self.open.extend(anchor.cloned());
        let value = read(self);
        if anchor.is_some() {
            self.open.pop();
        }
        value
    }

    fn alias(&mut self, anchor: &str, at: Mark) -> Found<Node> {
        if self.open.iter().any(|open| open == anchor) {
            return Err(stopped(&format!("anchor '{anchor}' value contains itself"), Some(at)));
        }
        let Some(node) = self.anchors.get(anchor).cloned() else {
            return Err(stopped(&format!("unknown anchor '{anchor}' referenced"), Some(at)));
        };
        self.count(size(&node), at)?;
        Ok(Node { at, ..node })
    }

    fn count(&mut self, more: usize, at: Mark) -> Found<()> {
        self.nodes += more;
        if self.nodes > NODES {
            return Err(stopped("document contains excessive aliasing", Some(at)));
        }
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Found<Value> {
        let mut items = Vec::new();
        loop {
            let event = self.next()?;
            if event.data == EventData::SequenceEnd {
                return Ok(Value::List(items));
            }
            items.push(self.node(event, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Found<Value> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let event = self.next()?;
            if event.data == EventData::MappingEnd {
                return Ok(Value::Map(entries));
            }
            let merge = is_merge(&event);
            let key_node = self.node(event, depth + 1)?;
            let event = self.next()?;
            let node = self.node(event, depth + 1)?;
            // Strictly read, a merged key may not be there already either.
            let more = if merge {
                to_merge(&node)?.into_iter().map(|entry| (go::quote(&entry.key), entry)).collect()
            } else {
                let (key, notation) = key(&key_node, &node)?;
                vec![(notation, Entry { key, key_at: key_node.at, node })]
            };
            for (notation, entry) in more {
                if entries.iter().any(|before| before.key == entry.key) {
                    self.duplicates.push((notation, entry.node.at));
                } else {
                    entries.push(entry);
                }
            }
        }
    }
}

fn is_merge(event: &Event) -> bool {
    matches!(&event.data, EventData::Scalar { value, style: ScalarStyle::Plain, .. } if value == "<<")
}

/// The entries that `<<` brings in: of a map, or of each map in a list.
fn to_merge(node: &Node) -> Found<Vec<Entry>> {
    match &node.value {
        Value::Map(entries) => Ok(entries.clone()),
        Value::List(items) if items.iter().all(|item| matches!(item.value, Value::Map(_))) => {
            Ok(items.iter().rev().map(to_merge).collect::<Found<Vec<_>>>()?.concat())
        }
        _ => Err(stopped("map merge requires map or sequence of maps as the value", Some(node.at))),
    }
}

/// A key as JSON has it, and as Go's `%#v` prints it.
fn key(key: &Node, value: &Node) -> Found<(String, String)> {
    match &key.value {
        Value::Text(text) => Ok((text.clone(), go::quote(text))),
        Value::Int(number) => Ok((number.to_string(), number.to_string())),
        Value::Bool(value) => Ok((value.to_string(), value.to_string())),
        Value::Float(number) => Ok((go::float(*number), go::float(*number))),
        Value::Null => {
            let message = format!(
                "error converting YAML to JSON: unsupported map key of type: %!s(<nil>), key: <nil>, value: {}",
                go::syntax(&value.value)
            );
            let mut problem = Problem::new(FoundAt::Yaml, "", message).hint("give the field a name");
            problem.at = Some(key.at);
            Err(Box::new(problem))
        }
        Value::List(_) | Value::Map(_) => {
            Err(stopped(&format!("invalid map key: {}", go::syntax(&key.value)), Some(key.at)))
        }
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(number) => Value::Int(number),
            Scalar::Float(number) => Value::Float(number),
            Scalar::Text(text) => Value::Text(text),
        }
    }
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|entry| size(&entry.node)).sum::<usize>(),
        _ => 1,
    }
}

fn mark(event: &Event) -> Mark {
    Mark { line: event.start_mark.line + 1, column: event.start_mark.column + 1 }
}
