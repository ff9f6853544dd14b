//! What a person is shown of a stage: before it runs its description, afterwards the files it left. Keys and tokens are never shown.

use crate::PlannedStage;
use seedling_steps::{Stage, matches_pattern};
use seedling_types::description::on_node;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Of a pattern so many files are listed.
const LISTED: usize = 12;
/// So much of a file is shown.
const SHOWN_LINES: usize = 60;

/// Before a stage: why it exists, what goes in and what it does.
pub(super) fn before(number: usize, of: usize, step: &PlannedStage) -> String {
    let s = &step.stage;
    let mut text = format!("\n── {number} of {of}: {} ──\n{}\n", s.name, s.what);
    let list =
        |items: &[&str]| if items.is_empty() { "nothing".into() } else { items.join("\n            ") };
    let _ = writeln!(text, "  why       {}", s.why);
    let _ = writeln!(text, "  reads     {}", list(s.reads));
    let _ = writeln!(text, "  writes    {}", list(s.writes));
    let _ = writeln!(text, "  check     {}", s.check);
    let _ = writeln!(text, "  upstream  {}", s.upstream);
    let _ = writeln!(text, "  more      seedling explain stage.{}", s.name);
    text
}

/// The files that are there of what a stage writes.
pub fn evidence(root: &Path, stage: &Stage) -> Vec<String> {
    listed(root, stage.writes)
}

/// What `l` shows: what it reads and what it writes, as far as it is there.
pub(super) fn look(root: &Path, stage: &Stage) -> String {
    let part = |title: &str, declared: &[&str]| {
        let lines = listed(root, declared);
        let lines = if lines.is_empty() { vec!["nothing yet".into()] } else { lines };
        format!("{title}\n  {}\n", lines.join("\n  "))
    };
    part("reads", stage.reads) + &part("writes", stage.writes) + "`l FILE` shows a file.\n"
}

fn listed(root: &Path, declared: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in declared.iter().flat_map(|declared| lines_of(root, declared)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn lines_of(root: &Path, declared: &str) -> Vec<String> {
    let Some(pattern) = is_path(declared) else { return vec![format!("{declared} (not a file)")] };
    let mut files = matching(root, &pattern);
    files.sort();
    let removed = declared.contains("(removed)");
    if files.is_empty() {
        return vec![format!(
            "{pattern}: {}",
            if removed { "not there, as it should be" } else { "not there" }
        )];
    }
    let more = files.len().saturating_sub(LISTED);
    let mut lines: Vec<_> = files.iter().take(LISTED).map(|path| line(root, path)).collect();
    if more > 0 {
        lines.push(format!("{pattern}: and {more} more"));
    }
    lines
}

/// Conditions of objects, events and DNS are declared in words.
fn is_path(declared: &str) -> Option<String> {
    let pattern = on_node(declared);
    let words = pattern.contains(' ') || (!declared.starts_with('/') && !declared.contains(['/', '.']));
    (!words).then_some(pattern)
}

fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    // Directories above the first star are fixed; stars in a directory's name do not occur.
    let fixed = pattern.split('*').next().unwrap_or(pattern);
    let dir = fixed.rfind('/').map_or("/", |end| &fixed[..end]);
    let mut found = Vec::new();
    files_below(&root.join(dir.trim_start_matches('/')), &mut found);
    let on_node = |path: &PathBuf| {
        path.strip_prefix(root).map(|path| format!("/{}", path.display())).unwrap_or_default()
    };
    found.retain(|path| matches_pattern(pattern, &on_node(path)));
    found
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// Path, size, and what it is.
fn line(root: &Path, path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let shown = path.strip_prefix(root).unwrap_or(path);
    let object = object(&text).map(|object| format!("  {object}")).unwrap_or_default();
    format!("/{}  {} bytes{object}", shown.display(), bytes.len())
}

/// Kind, namespace and name of a manifest.
fn object(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_saphyr::from_str(text).ok()?;
    let word = |pointer: &str| value.pointer(pointer)?.as_str().map(str::to_string);
    let namespace = word("/metadata/namespace").map(|ns| format!("{ns}/")).unwrap_or_default();
    let object = format!("{} {namespace}{}", word("/kind")?, word("/metadata/name").unwrap_or_default());
    Some(object.trim_end().into())
}

/// The beginning of a file of the node, unless it holds a secret.
pub(super) fn show(root: &Path, name: &str) -> String {
    let path = on_node(name);
    let there = root.join(path.trim_start_matches('/'));
    let text = match std::fs::read(&there) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => return format!("{path}: {e}\n"),
    };
    if is_secret(&path, &text) {
        return format!("{path}: {} bytes; it holds a secret, which is not shown\n", text.len());
    }
    let lines: Vec<_> = text.lines().take(SHOWN_LINES).collect();
    let more = text.lines().count().saturating_sub(SHOWN_LINES);
    let rest = if more > 0 { format!("\n… {more} more lines") } else { String::new() };
    format!("{}{rest}\n", lines.join("\n"))
}

fn is_secret(path: &str, text: &str) -> bool {
    let in_name = ["token", "encryption", "kubeconfig", ".key", "pull-secret", ".docker"];
    let in_text = ["PRIVATE KEY", "kind: Secret", "\"kind\":\"Secret\"", "key-data", "token:", "\"auths\""];
    in_name.iter().any(|word| path.contains(word)) || in_text.iter().any(|word| text.contains(word))
}
