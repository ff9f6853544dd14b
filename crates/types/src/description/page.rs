//! A description for people: for a terminal, and as a section of the book.

use super::Description;
use std::fmt::Write;

const WIDTH: usize = 100;

impl Description {
    /// For a terminal.
    pub fn page(&self) -> String {
        let also: Vec<_> = self.also.iter().map(|name| format!("{}.{name}", self.kind)).collect();
        let also = if also.is_empty() { String::new() } else { format!("  (also {})", also.join(", ")) };
        let mut text = format!("{}{also}\n", self.full_name());
        for (title, lines) in self.parts() {
            let _ = write!(text, "\n{}\n", title.to_uppercase());
            let bullet = if title == FAILS { "- " } else { "" };
            for line in lines {
                for (number, line) in wrap(&line, WIDTH - 2 - bullet.len()).into_iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "  {}{line}",
                        if number == 0 { bullet } else { &"  "[..bullet.len()] }
                    );
                }
            }
        }
        text
    }

    /// Below a heading that is there already.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (title, lines) in self.parts() {
            let _ = match (title, lines.as_slice()) {
                (WHAT, lines) => writeln!(text, "{}\n", lines.join(" ")),
                (title, [line]) => writeln!(text, "- {title}: {line}"),
                (FAILS, lines) => writeln!(text, "- {FAILS}:\n  - {}", lines.join("\n  - ")),
                (title, lines) => writeln!(text, "- {title}: {}", lines.join(", ")),
            };
        }
        text
    }

    fn parts(&self) -> Vec<(&'static str, Vec<String>)> {
        let one = |text: &String| if text.is_empty() { vec![] } else { vec![text.clone()] };
        let mut parts = vec![(WHAT, one(&self.what)), ("why", one(&self.why))];
        parts.extend(self.facts.iter().map(|fact| (fact.name, vec![fact.value.clone()])));
        parts.extend([
            ("reads", self.reads.clone()),
            ("writes", self.writes.clone()),
            ("check", one(&self.check)),
            (FAILS, self.fails.clone()),
            ("upstream", one(&self.upstream)),
            ("see also", one(&self.see.join(", "))),
        ]);
        parts.retain(|(_, lines)| !lines.is_empty());
        parts
    }
}

const WHAT: &str = "what";
const FAILS: &str = "what usually goes wrong";

/// Lines that are there stay apart.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for given in text.split('\n') {
        lines.push(String::new());
        for word in given.split(' ') {
            let last = lines
                .last_mut()
                .filter(|l| l.is_empty() || l.chars().count() + 1 + word.chars().count() <= width);
            match last {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) => *line = format!("{line} {word}"),
                None => lines.push(word.into()),
            }
        }
    }
    lines
}
