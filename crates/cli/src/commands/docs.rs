//! `seedling docs`: the book's generated pages, from the tables the program itself works with, and the figures of the README and the
//! changelog, from the committed reports.

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use seedling_observe::figures::{quote, summary_of};
use seedling_types::description::Kind;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct DocsArgs {
    /// The book's directory
    dir: PathBuf,
}

const NOTE: &str = "<!-- made by `make docs`; do not edit -->\n";

pub(crate) fn run(args: &DocsArgs) -> Result<()> {
    for (name, page) in pages() {
        seedling_steps::write_atomic_if_changed(&args.dir.join(name), page, 0o644)?;
    }
    for name in QUOTING {
        let path = args.dir.join(name);
        if path.exists() {
            seedling_steps::write_atomic_if_changed(&path, quoting(&args.dir, name)?, 0o644)?;
        }
    }
    Ok(())
}

/// Texts with figures of reports.
const QUOTING: [&str; 3] = ["../README.md", "../CHANGELOG.md", "benchmark.md"];

fn quoting(book: &Path, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(book.join(name)).with_context(|| name.to_string())?;
    quote(&text, |report| summary_of(&book.join("reports"), report)).with_context(|| name.to_string())
}

fn pages() -> [(&'static str, String); 10] {
    let says = "What `seedling explain` says of";
    [
        ("causes.md", format!("# Causes, by what you see\n\n{NOTE}{}", seedling_diagnose::rules::page())),
        (
            "components.md",
            described(
                "Components",
                &format!("{says} programs, operators, services on nodes and the helper's servers."),
                &[Kind::Component],
            ),
        ),
        (
            "ports-and-files.md",
            described(
                "Ports and files",
                &format!("{says} ports and of paths on nodes."),
                &[Kind::Port, Kind::File],
            ),
        ),
        (
            "conditions.md",
            described(
                "Conditions",
                &format!("What is waited for, by name: {} each.", says.to_lowercase()),
                &[Kind::Condition],
            ),
        ),
        (
            "seeds.md",
            described(
                "The seeds' steps, and where they are here",
                "Seedling follows four texts: 000 *Bootstrap and Bootkube* (its timeline), 001 *Bootstrap* (the steps on the bootstrap node; it \
                 has no 10), 002 *The Bootstrap Process* (what bootkube.service does) and 003 *Dissecting bootkube.sh* (its fifteen stages). \
                 `seedling explain seed.003.7` is the seventh stage of 003; `stage.7` is the seventh of [our plan](stages.md).",
                &[Kind::Seed],
            ),
        ),
        ("commands.md", commands()),
        ("install-config.md", install_config()),
        ("stages.md", stages()),
        ("checks.md", checks()),
        ("certificates.md", format!("# Certificates\n\n{NOTE}{}", seedling_pki::trust::page())),
    ]
}

/// Every check of every command, the lab's own included.
fn checks() -> String {
    let mut text = format!(
        "# Checks\n\n{NOTE}\nNames are stable: `--only` and `--ignore` take them, and `-o json` has them.\n"
    );
    let mut all = seedling_checks::all();
    all.insert(1, ("preflight --lab", seedling_lab::preflight::CHECKS));
    for (command, checks) in all {
        let _ = write!(
            text,
            "\n## seedling {command}\n\n| check | what is asked | why | if it fails |\n|---|---|---|---|\n"
        );
        for check in checks {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                check.name,
                cell(check.what),
                cell(check.why),
                cell(check.next)
            );
        }
    }
    text
}

fn commands() -> String {
    let mut text = format!("# Commands\n\n{NOTE}");
    let mut root =
        crate::groups::grouped(crate::Cli::command().disable_version_flag(true).disable_help_flag(true));
    root.build();
    command(&mut text, &mut root, "");
    text
}

fn command(text: &mut String, command_: &mut Command, above: &str) {
    let name = format!("{above} {}", command_.get_name()).trim_start().to_string();
    let help = command_.render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim());
    for sub in command_.get_subcommands_mut().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        command(text, sub, &name);
    }
}

fn install_config() -> String {
    let mut text = format!(
        "# Fields of the install-config\n\n{NOTE}\nWhat `seedling explain` says of each field.\n\n\
         | field | type | default | what it is for |\n|---|---|---|---|\n"
    );
    for (path, field) in seedling_assets::config::all_fields() {
        let required = if field.required { " (required)" } else { "" };
        let values = if field.values.is_empty() {
            String::new()
        } else {
            format!(" One of: {}.", field.values.join(", "))
        };
        let line = format!(
            "| `{path}` | {}{required} | {} | {}{values} |",
            field.kind.word(),
            field.default,
            field.doc
        );
        let _ = writeln!(text, "{}", line.replace('\n', " "));
    }
    text
}

fn stages() -> String {
    let intro = "They run on the bootstrap node in this order. Each stage is recorded in the node's journal and, from there, in \
        `/var/log/openshift/bootkube.json`. A stage with a done file is skipped when bootkube is restarted. On the node, `seedling stage list` \
        shows where bootkube is and `seedling stage verify NAME` evaluates a check; `lab up --step` goes through them one by one. \
        Paths without a slash in front are below `/opt/openshift`.";
    described("Stages of bootkube", intro, &[Kind::Stage])
}

/// What `explain` says of everything of these kinds.
fn described(title: &str, intro: &str, kinds: &[Kind]) -> String {
    let mut text = format!("# {title}\n\n{NOTE}\n{intro}\n");
    let catalog = super::explain::catalog();
    for thing in kinds.iter().flat_map(|kind| catalog.of(*kind)) {
        let number =
            if thing.kind == Kind::Stage { format!("{}. ", thing.also.join("")) } else { String::new() };
        let _ = write!(text, "\n## {number}{}\n\n{}", thing.name, thing.markdown());
    }
    text
}

#[cfg(test)]
#[path = "docs_tests.rs"]
mod documents;

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    #[test]
    fn the_book_is_current() {
        for (name, page) in pages() {
            let there = std::fs::read_to_string(book().join(name)).unwrap_or_default();
            assert!(there == page, "docs/{name} is not what the program says: make docs");
        }
    }

    #[test]
    fn figures_are_those_of_the_reports() {
        for name in QUOTING {
            let there = std::fs::read_to_string(book().join(name)).unwrap_or_default();
            let quoted = quoting(&book(), name).unwrap_or_else(|e| panic!("{e:#}"));
            assert!(there == quoted, "{name} quotes other figures than its reports have: make docs");
        }
    }

    #[test]
    fn reports_name_the_commit_that_made_them() {
        for path in files(&book().join("reports")) {
            let report = seedling_observe::Report::read(&path).unwrap_or_else(|e| panic!("{e:#}"));
            let path = path.display();
            let hex = report.revision.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
            assert!(report.revision.len() == 40 && hex, "{path}: {}", report.revision);
            assert!(!report.dirty, "{path}: made with changes that are in no commit");
            assert!(path.to_string().ends_with(&format!("{}.json", report.name)), "{path}: {}", report.name);
            assert!(!report.summary.is_empty() && !report.command.is_empty(), "{path}");
            // What anybody can type in a checkout.
            assert!(!report.command.contains(" /"), "{path} names a machine's own path: {}", report.command);
            if report.name.starts_with("chaos") {
                let count =
                    |key: &str| report.results[key].as_u64().unwrap_or_else(|| panic!("{path}: no {key}"));
                let list =
                    |value: &serde_json::Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
                let bring_ups = list(&report.results, "bringUps");
                let cases = bring_ups.iter().map(|b| list(b, "cases").len() as u64).sum::<u64>();
                assert_eq!(count("green") + count("red") + count("missed"), cases, "{path}");
                assert!(cases > 0 && report.seed.is_some(), "{path}");
            }
        }
    }

    /// Of ours; upstream's environment variables are named also where they are not read.
    #[test]
    fn constants_in_the_book_exist() {
        let root = book().join("..");
        let code: Vec<_> = (["crates", "tests", "scripts"].iter().flat_map(|dir| files(&root.join(dir))))
            .chain([root.join("Makefile")])
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .collect();
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        for page in files(&book()).iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
            let text = std::fs::read_to_string(page).unwrap_or_default();
            let quoted = text.split('`').skip(1).step_by(2);
            let names = quoted.filter(|q| q.contains('_') && q.chars().all(is_name));
            for name in names.filter(|n| !n.starts_with("OPENSHIFT_INSTALL_")) {
                let word = |text: &String| text.split(|c| !is_name(c)).any(|word| word == name);
                assert!(code.iter().any(word), "{}: `{name}` is nowhere in the code", page.display());
            }
        }
    }

    /// All below; none where there is no such folder.
    fn files(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
        let (dirs, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        files.extend(dirs.iter().flat_map(|dir| self::files(dir)));
        files
    }
}
