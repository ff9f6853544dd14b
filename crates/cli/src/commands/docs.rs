//! `seedling docs`: the book's generated pages, from the tables the program itself works with.

use anyhow::Result;
use clap::{Args, Command, CommandFactory};
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Args)]
pub struct DocsArgs {
    /// The book's directory
    dir: PathBuf,
}

const NOTE: &str = "<!-- made by `make docs`; do not edit -->\n";

pub fn run(args: &DocsArgs) -> Result<()> {
    for (name, page) in pages() {
        seedling_steps::write_atomic_if_changed(&args.dir.join(name), page, 0o644)?;
    }
    Ok(())
}

fn pages() -> [(&'static str, String); 3] {
    [("commands.md", commands()), ("install-config.md", install_config()), ("stages.md", stages())]
}

fn commands() -> String {
    let mut text = format!("# Commands\n\n{NOTE}");
    let mut root = crate::Cli::command().disable_version_flag(true).disable_help_flag(true);
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
    let mut text = format!(
        "# Stages of bootkube\n\n{NOTE}\nIn this order, on the bootstrap node. Each is in the node's journal and, made of that, \
         in `/var/log/openshift/bootkube.json`; a stage with a done file is skipped when bootkube is started again, and one whose \
         done file was removed runs again.\n"
    );
    for (number, step) in seedling_bootkube::PLAN.iter().enumerate() {
        let s = &step.stage;
        let list = |items: &[&str]| if items.is_empty() { "nothing".into() } else { items.join(", ") };
        let done = s.done.map(|d| format!("`{d}.done`")).unwrap_or("none: checked anew on every run".into());
        let _ = write!(
            text,
            "\n## {}. {}\n\n- why: {}\n- reads: {}\n- writes: {}\n- worked when: {}\n- done file: {done}\n",
            number + 1,
            s.name,
            s.why,
            list(s.reads),
            list(s.writes),
            s.check
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_is_current() {
        let book = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (name, page) in pages() {
            let there = std::fs::read_to_string(book.join(name)).unwrap_or_default();
            assert!(there == page, "docs/{name} is not what the program says: make docs");
        }
    }
}
