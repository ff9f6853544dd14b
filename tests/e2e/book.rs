//! Every command of the book that can run on a grown lab is run, as its reader would type it.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, book, output, run, seedling, text};
use std::path::Path;
use std::process::Command;

/// Fewer would mean that the book is no longer read.
const AT_LEAST: usize = 25;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("commands_of_the_book_run", || {
        let scripts = scripts()?;
        ensure!(scripts.len() >= AT_LEAST, "only {} scripts were found", scripts.len());
        let tools = tempfile::tempdir()?;
        std::os::unix::fs::symlink(seedling().get_program(), tools.path().join("seedling"))?;
        let wrong: Vec<_> =
            scripts.iter().filter_map(|script| tried(script, lab, tools.path()).err()).collect();
        // The tutorial's example goes: later checks look at a cluster without guests.
        run(&mut lab.kubectl(&["delete", "deployment,service", "web", "--ignore-not-found"]))?;
        println!("{} scripts of the book, {} failed", scripts.len(), wrong.len());
        let told: Vec<_> = wrong.iter().map(|e| format!("{e:#}")).collect();
        ensure!(wrong.is_empty(), "{}", told.join("\n"));
        Ok(())
    });
}

fn scripts() -> Result<Vec<book::Script>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = std::fs::read_dir(root.join("docs"))?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut pages: Vec<_> = pages.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    let mut found: Vec<book::Script> = Vec::new();
    for page in pages {
        let name = page.file_name().context("a page without a name")?.to_string_lossy();
        for script in book::scripts(&name, &std::fs::read_to_string(&page)?) {
            // What stands on two pages is run once.
            if found.iter().all(|known| known.text != script.text) {
                found.push(script);
            }
        }
    }
    Ok(found)
}

/// In an empty folder, with the lab as the reader's default one.
fn tried(script: &book::Script, lab: &Lab, tools: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = std::env::join_paths(
        std::iter::once(tools.to_path_buf())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let text_of = script
        .text
        .replace("--name default", &format!("--name {}", lab.name))
        .replace("/var/lib/seedling/labs/default", &lab.dir().display().to_string());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &text_of]).current_dir(folder.path());
    let done = output(shell.env("PATH", path).env("SEEDLING_LAB", &lab.name))?;
    ensure!(
        done.status.success(),
        "{}: {text_of}\nended with {}\n{}{}",
        script.page,
        done.status,
        text(&done.stdout),
        text(&done.stderr)
    );
    Ok(())
}
