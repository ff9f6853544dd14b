//! What is declared is so: which crate may use which, that each dependency is used, and that what nobody uses has a reason.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Dependencies that no source names: crate, dependency, and what it is there for.
const NOT_NAMED: &[(&str, &str, &str)] =
    &[("crates/cli", "indicatif", "nothing; without it nearly everything is compiled anew, once")];
/// Words of a cell that are no crates.
const NO_CRATES: [&str; 5] = ["-", "all", "in", "its", "test"];
/// How the table of crates begins, in whichever document it is.
const HEADER: [&str; 3] = ["crate", "what it is", "may use"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One member of the workspace.
struct Member {
    /// Its folder, e.g. `crates/types`.
    folder: String,
    uses: Vec<Use>,
}

struct Use {
    /// As sources name it, which may be another name than the package's.
    name: String,
    /// A member's name without `seedling-`.
    member: Option<String>,
    /// Only for tests.
    dev: bool,
}

fn members() -> Vec<Member> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let run = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", crate::text(&run.stderr));
    let metadata: Value = serde_json::from_slice(&run.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|p| (p["id"].to_string(), p)).collect();
    let at = metadata["workspace_root"].as_str().unwrap().to_string() + "/";
    let used = |dep: &Value| {
        let package = packages[&dep["pkg"].to_string()]["name"].as_str().unwrap();
        Use {
            name: dep["name"].as_str().unwrap().into(),
            member: package.strip_prefix("seedling-").map(str::to_string),
            dev: list(&dep["dep_kinds"]).iter().all(|kind| kind["kind"] == "dev"),
        }
    };
    let members = list(&metadata["workspace_members"]);
    let nodes = list(&metadata["resolve"]["nodes"]);
    let of = |node: &Value| {
        let manifest = packages[&node["id"].to_string()]["manifest_path"].as_str().unwrap();
        let folder = manifest.strip_prefix(&at).unwrap().trim_end_matches("/Cargo.toml").to_string();
        Member { folder, uses: list(&node["deps"]).iter().map(used).collect() }
    };
    nodes.iter().filter(|node| members.contains(&node["id"])).map(of).collect()
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()
}

/// Folder → what its row allows, wherever the table is.
fn table() -> BTreeMap<String, String> {
    let mut documents = vec![root().join("ARCHITECTURE.md")];
    files(&root().join("docs"), "md", &mut documents);
    let mut rows = BTreeMap::new();
    for text in documents.iter().filter_map(|path| fs::read_to_string(path).ok()) {
        let mut lines = text.lines().skip_while(|line| cells(line) != HEADER).skip(1);
        for row in lines.by_ref().take_while(|line| line.starts_with('|')).map(cells).skip(1) {
            rows.insert(format!("crates/{}", row[0]), row[2].to_string());
        }
    }
    rows
}

/// What a cell names: `types, pki (helper in its test)` allows `helper` to tests only.
fn allows(cell: &str, used: &Use) -> bool {
    let (always, in_tests) = cell.split_once('(').unwrap_or((cell, ""));
    let Some(member) = &used.member else { return true };
    let names = |text: &str| text.split([',', ' ', ';']).any(|word| word == member || word == "all");
    names(always) || (used.dev && in_tests.contains("in its test") && names(in_tests))
}

#[test]
fn a_crate_uses_what_its_row_allows() {
    let (table, members) = (table(), members());
    let mut wrong = Vec::new();
    for member in members.iter().filter(|member| member.folder.starts_with("crates/")) {
        let Some(cell) = table.get(&member.folder) else {
            wrong.push(format!("{} has no row", member.folder));
            continue;
        };
        for used in member.uses.iter().filter(|used| !allows(cell, used)) {
            wrong.push(format!("{} uses {}, and may use {cell}", member.folder, used.name));
        }
        let uses = |word: &&str| member.uses.iter().any(|used| used.member.as_deref() == Some(*word));
        let named =
            cell.split([',', ' ', '(', ')']).filter(|word| !word.is_empty() && !NO_CRATES.contains(word));
        for unused in named.filter(|word| !uses(word)) {
            wrong.push(format!("{} may use {unused}, and does not", member.folder));
        }
    }
    let folders: BTreeSet<_> = members.iter().map(|member| member.folder.as_str()).collect();
    let rows_of_nothing = table.keys().filter(|folder| !folders.contains(folder.as_str()));
    wrong.extend(rows_of_nothing.map(|folder| format!("{folder} has a row, and is no crate")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_are_understood() {
    let used = |member: &str, dev| Use { name: String::new(), member: Some(member.into()), dev };
    for (cell, member, dev, allowed) in [
        ("types, pki", "pki", false, true),
        ("types, pki", "pk", true, false),
        ("types (helper in its test)", "helper", true, true),
        ("types (helper in its test)", "helper", false, false),
        ("-", "types", true, false),
        ("all", "lab", false, true),
    ] {
        assert_eq!(allows(cell, &used(member, dev)), allowed, "{cell}: {member} {dev}");
    }
}

fn files(dir: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, end, found);
        } else if path.extension().is_some_and(|extension| extension == end) {
            found.push(path);
        }
    }
}

/// The code of a folder, without lines that are comments.
fn code(dir: &Path) -> String {
    let mut paths = Vec::new();
    files(dir, "rs", &mut paths);
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    let code = |text: String| {
        text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    texts.map(code).collect::<Vec<_>>().join("\n")
}

/// `name::` or `use name`, and no longer word that ends so.
fn names(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let used = before.ends_with("use ") && !after.starts_with(word);
        used || (after.starts_with("::") && !before.ends_with(word))
    })
}

#[test]
fn every_dependency_is_named() {
    let mut wrong = Vec::new();
    for member in members() {
        let dir = root().join(&member.folder);
        let (all, own) = (code(&dir), code(&dir.join("src")));
        for used in &member.uses {
            // What only tests name is for tests; all of `tests/` is.
            let code = if used.dev || member.folder == "tests" { &all } else { &own };
            let known = NOT_NAMED.iter().any(|(of, name, _)| *of == member.folder && *name == used.name);
            if names(code, &used.name) == known {
                wrong.push(format!("{}: {}", member.folder, used.name));
            }
        }
    }
    assert!(wrong.is_empty(), "asked for, and named by no source, or the reverse: {wrong:#?}");
}

#[test]
fn names_are_whole_words() {
    assert!(names("use serde::Serialize;", "serde") && names("#[tokio::test]", "tokio"));
    assert!(names("use webpki as w;", "webpki"));
    assert!(!names("fn data_url(x: u8)", "data_url") && !names("a_serde::x()", "serde"));
    assert!(!names("use serde_json::Value;", "serde"));
}

#[test]
fn every_dependency_of_the_workspace_is_some_crates() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let after = text.split_once("[workspace.dependencies]").unwrap().1;
    let section = after.split("\n[").next().unwrap();
    let names =
        section.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).filter(|n| !n.contains('#'));
    let mut manifests = Vec::new();
    files(&root().join("crates"), "toml", &mut manifests);
    manifests.push(root().join("tests/Cargo.toml"));
    let asked: String = manifests.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let asked_for = |name: &str| {
        [format!("\n{name}.workspace"), format!("\n{name} = {{ workspace")].iter().any(|a| asked.contains(a))
    };
    let idle: Vec<_> = names.filter(|name| !asked_for(name)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}

/// `unreachable_pub` and its like hold everywhere, and code that nobody uses is kept for a reason or not at all.
#[test]
fn lints_hold_everywhere_and_unused_code_has_a_reason() {
    for member in members() {
        let manifest = fs::read_to_string(root().join(&member.folder).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", member.folder);
    }
    let code = code(&root().join("crates")) + &code(&root().join("tests"));
    // In two parts, or this would be one of them.
    for (at, _) in code.match_indices(&["dead", "code"].join("_")) {
        let attribute = &code[code[..at].rfind('#').unwrap()..];
        let attribute = attribute.split(']').next().unwrap();
        assert!(attribute.contains("reason = "), "{attribute}");
    }
}
