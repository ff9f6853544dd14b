//! Finding a description by what a person types. Pure.

use super::{Description, Kind};
use crate::paths::{OPT_OPENSHIFT, matches_pattern};

/// At most so many names are suggested.
const SUGGESTIONS: usize = 4;
/// How alike a name must be to be suggested: 1.0 is the same.
const ALIKE: f64 = 0.75;

pub struct Catalog(pub Vec<Description>);

#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    One(Box<Description>),
    /// Full names.
    Several(Vec<String>),
    /// Full names of the nearest.
    Nothing(Vec<String>),
}

impl Catalog {
    /// By full name (`port.6443`), or by the name alone where that is enough. Upper and lower case are the same.
    pub fn find(&self, asked: &str) -> Found {
        let asked = asked.trim();
        let (kind, name) = split(asked);
        let is = |d: &&Description| {
            kind.is_none_or(|kind| d.kind == kind) && d.names().any(|known| known.eq_ignore_ascii_case(name))
        };
        let found: Vec<_> = self.0.iter().filter(is).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Found::One(Box::new(self.with_users(one))),
            several => return Found::Several(several.iter().map(|d| d.full_name()).collect()),
        }
        if let Some(condition) = self.of(Kind::Condition).find(|d| is_awaited_in(asked, d)) {
            return Found::One(Box::new(condition.clone()));
        }
        match self.file(name).filter(|_| kind.is_none_or(|kind| kind == Kind::File)) {
            Some(file) => Found::One(Box::new(file)),
            None => Found::Nothing(self.nearest(kind, name)),
        }
    }

    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Description> {
        self.0.iter().filter(move |d| d.kind == kind)
    }

    /// A file that no table names: what its directory is for, and which stages have to do with it.
    fn file(&self, path: &str) -> Option<Description> {
        let path = match path.strip_prefix('/') {
            Some(_) => path.trim_end_matches('/').to_string(),
            // As stages declare theirs: below bootkube's directory.
            None if path.contains('/') => format!("{OPT_OPENSHIFT}/{path}"),
            None => return None,
        };
        let above = |d: &&Description| {
            path.strip_prefix(&d.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let above = self.of(Kind::File).filter(above).max_by_key(|d| d.name.len());
        let mut file = Description { name: path.clone(), ..above?.clone() };
        if let Some(above) = above.filter(|above| above.name != path) {
            file.what = format!("A file below {}: {}", above.name, first_lower(&above.what));
            file.see.push(above.full_name());
        }
        Some(self.with_users(&file))
    }

    /// With the stages that write and read it, where it is a file.
    fn with_users(&self, found: &Description) -> Description {
        let mut file = found.clone();
        if file.kind != Kind::File {
            return file;
        }
        let users = |list: fn(&Description) -> &[String]| {
            let has = |d: &&Description| {
                list(d).iter().any(|declared| matches_pattern(&on_node(declared), &file.name))
            };
            self.of(Kind::Stage).filter(has).map(Description::full_name).collect::<Vec<_>>().join(", ")
        };
        let (written, read) = (users(|d| &d.writes), users(|d| &d.reads));
        file = file.fact("written by", written).fact("read by", read);
        file
    }

    fn nearest(&self, kind: Option<Kind>, name: &str) -> Vec<String> {
        let name = name.to_lowercase();
        let score = |d: &Description| {
            let alike = |known: &str| match known.to_lowercase() {
                // The more of the name it is, the nearer.
                known if name.len() > 2 && known.contains(&name) => {
                    0.9 + 0.1 * name.len() as f64 / known.len() as f64
                }
                known => strsim::jaro_winkler(&known, &name),
            };
            let best = d.names().map(alike).fold(0.0, f64::max);
            match kind {
                // Who names a kind means it, unless nothing of that kind is alike.
                Some(kind) if kind != d.kind => best - 0.1,
                // There are so many that they would hide the others.
                None if d.kind == Kind::Field => best - 0.05,
                _ => best,
            }
        };
        let mut near: Vec<_> =
            self.0.iter().map(|d| (score(d), d.kind, d.full_name())).filter(|n| n.0 >= ALIKE).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        near.into_iter().take(SUGGESTIONS).map(|(_, _, name)| name).collect()
    }
}

/// The kind, if the name begins with one. `command lab up` is understood too.
fn split(asked: &str) -> (Option<Kind>, &str) {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Field);
    let mut named = kinds.filter_map(|kind| {
        let rest = asked.get(kind.word().len()..)?;
        let begins = asked.get(..kind.word().len())?.eq_ignore_ascii_case(kind.word());
        let rest = rest.strip_prefix(['.', ' ', '/'].as_slice())?;
        begins.then_some((Some(kind), rest))
    });
    named.next().unwrap_or((None, asked))
}

/// Whether a line of a log or an error (`waiting for SENTENCE: seen`, `SENTENCE: no progress`) is about the condition. What its sentence has
/// in capitals is another word each time.
fn is_awaited_in(line: &str, condition: &Description) -> bool {
    let sentences = line.split(": ").map(|part| part.rsplit("waiting for ").next().unwrap_or(part).trim());
    let same = |(known, said): (&str, &str)| known == said || is_in_capitals(known);
    let mut known = condition.also.iter().map(|known| known.split(' ').collect::<Vec<_>>());
    known.any(|known| {
        sentences.clone().any(|said| {
            let said: Vec<_> = said.split(' ').collect();
            said.len() == known.len() && known.iter().copied().zip(said).all(same)
        })
    })
}

fn is_in_capitals(word: &str) -> bool {
    word.len() > 1 && word != "API" && word.bytes().all(|b| b.is_ascii_uppercase())
}

/// What a stage declares is below bootkube's directory, unless it says otherwise; behind a bracket people read why.
pub fn on_node(declared: &str) -> String {
    let path = declared.split(" (").next().unwrap_or(declared);
    if path.starts_with('/') { path.into() } else { format!("{OPT_OPENSHIFT}/{path}") }
}

fn first_lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
