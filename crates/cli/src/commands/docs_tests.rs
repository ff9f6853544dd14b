//! Documents hold together: links and anchors of all Markdown files lead somewhere, pages that code names exist, every page is on the
//! book's list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files of this kind below, without what is built or hidden.
fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
    found
}

/// Without fenced blocks, in which `#` and brackets mean other things.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .scan(false, |fenced, line| {
            let fence = line.trim_start().starts_with("```");
            *fenced ^= fence;
            Some((!fence && !*fenced).then_some(line))
        })
        .flatten()
}

/// Command lines of this program in fenced blocks, as words, without what a shell does with them. `…` stands for something left out, `<X>` for any X.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        fenced && !fence
    });
    let commands = lines.map(|line| line.trim_start().trim_start_matches("$ "));
    commands.filter(|line| line.starts_with("seedling ") && !line.contains(['…', '<'])).map(words).collect()
}

/// As a shell splits a line: quotes hold words together; a comment, a pipe, a redirection or a continuation ends the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], String::new(), None);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#' | '|' | '>' | '\\' | ';') if line[..at].ends_with(' ') => break,
            (None, ' ') => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (_, c) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// `target` of each `[text](target)` outside of code.
fn links(text: &str) -> Vec<String> {
    let links = |line: &str| {
        let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        let targets = words.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        targets.map(|(target, _)| target.to_string()).collect::<Vec<_>>()
    };
    prose(text).flat_map(links).collect()
}

/// As GitHub makes them: lower case, no punctuation, a dash for each space.
fn anchors(text: &str) -> BTreeSet<String> {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let slug = |title: &str| title.chars().filter(kept).collect::<String>().to_lowercase().replace(' ', "-");
    let titles = prose(text).filter(|line| line.starts_with('#'));
    titles.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

/// What is wrong with a link of `page`, if anything.
fn broken(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let there = if path.is_empty() { page.to_path_buf() } else { page.parent()?.join(path) };
    if !there.exists() {
        return Some("no such file".into());
    }
    let known = anchor.is_empty() || anchors(&read(&there)).contains(anchor);
    (!known).then(|| "no such heading".into())
}

#[test]
fn links_and_anchors_of_a_text() {
    let text = "# A lab's node\n[a](b.md#c), [`code`](d) and `[no](link)`\n```\n# no heading\n[no](link)\n```\n## 1. Next, one\n";
    assert_eq!(links(text), ["b.md#c", "d"]);
    assert_eq!(anchors(text), BTreeSet::from(["a-labs-node", "1-next-one"].map(String::from)));
    let page = root().join("docs/README.md");
    for (target, works) in [
        ("tutorial.md", true),
        ("../README.md#status", true),
        ("https://rustup.rs", true),
        ("../README.md#nowhere", false),
        ("nowhere.md", false),
        ("#nowhere", false),
    ] {
        assert_eq!(broken(&page, target).is_none(), works, "{target}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = files(&root(), &["md"]);
    assert!(pages.len() > 20, "{pages:?}");
    let wrong: Vec<_> = (pages.iter())
        .flat_map(|page| links(&read(page)).into_iter().map(move |target| (page, target)))
        .filter_map(|(page, target)| {
            Some(format!("{}: {target}: {}", page.display(), broken(page, &target)?))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_that_code_names_exist() {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    for path in files(&root(), &["rs", "sh", "toml"]) {
        let text = read(&path);
        let words = text.split(|c| !is_path(c)).map(|word| word.trim_end_matches('.'));
        for page in words.filter(|word| word.starts_with("docs/") && word.ends_with(".md")) {
            assert!(root().join(page).exists(), "{}: {page}", path.display());
        }
    }
}

#[test]
fn the_book_lists_every_page() {
    let book = root().join("docs");
    let index = book.join("README.md");
    let listed: BTreeSet<_> = (links(&read(&index)).iter())
        .filter_map(|target| book.join(target.split('#').next()?).canonicalize().ok())
        .collect();
    for page in files(&book, &["md"]).iter().filter(|page| **page != index) {
        let whole = page.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(listed.contains(&whole), "docs/README.md does not list {}", page.display());
    }
}

#[test]
fn commands_of_a_text() {
    let text = "`seedling prose`\n```\n$ seedling lab exec a -- sh -c 'x | y'   # why\n  seedling timeline -o svg > a.svg\nseedling x …\nother\n```\n";
    let (exec, svg) =
        (["seedling", "lab", "exec", "a", "--", "sh", "-c", "x | y"], ["seedling", "timeline", "-o", "svg"]);
    assert_eq!(command_lines(text), [exec.to_vec(), svg.to_vec()]);
}

/// Whoever copies a line from the book is not told that there is no such option.
#[test]
fn commands_in_the_book_are_commands() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in files(&root(), &["md"]) {
        for line in command_lines(&read(&page)) {
            seen += 1;
            if let Err(error) = crate::parse(crate::usage::arguments(line.iter().map(Into::into))) {
                wrong.push(format!("{}: {}: {error}", page.display(), line.join(" ")));
            }
        }
    }
    assert!(seen > 50 && wrong.is_empty(), "{}", wrong.join("\n"));
}
