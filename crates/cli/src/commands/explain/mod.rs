//! `seedling explain`: what a stage, component, certificate, port, file, condition, command or field is for.

mod catalog;
#[cfg(test)]
mod tests;

pub(crate) use catalog::catalog;

use super::lab::Format;
use anyhow::Result;
use clap::Args;
use seedling_types::description::{Description, Found, Kind};
use serde_json::{Map, json};
use std::process::ExitCode;

/// The documented code of wrong usage.
const UNKNOWN_NAME: u8 = 2;

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// What to explain, e.g. stage.etcd-bootstrap, stage.6, etcd, 22623, cert.etcd-signer, /etc/kubernetes/manifests, seed.003.7, "lab up",
    /// networking.clusterNetwork, or a line of a log that says what is waited for; the part before the dot is needed only where several have the
    /// name [default: an overview]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let asked = args.names.join(" ");
    match look_up(&asked) {
        Ok(answer) => {
            match args.output {
                Format::Table => print!("{}", answer.text()),
                Format::Json => println!("{}", answer.json()?),
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            eprintln!("error: {why}");
            Ok(ExitCode::from(UNKNOWN_NAME))
        }
    }
}

enum Answer {
    Overview(Vec<Description>),
    Thing(Box<Description>),
    /// A field's own page is as openshift-install's.
    Field(String, Box<Description>),
}

fn look_up(asked: &str) -> Result<Answer, String> {
    if asked.is_empty() {
        return Ok(Answer::Overview(catalog().0));
    }
    let catalog = catalog();
    if let Some(path) = catalog::field_path(asked) {
        let found = catalog.of(Kind::Field).find(|field| field.name.eq_ignore_ascii_case(&path));
        return field(&path, found.cloned().unwrap_or_else(catalog::whole_file));
    }
    // "stage list" is a command, although "stage" is also a kind.
    if let (true, Found::One(command)) = (asked.contains(' '), catalog.find(&format!("command.{asked}"))) {
        return Ok(Answer::Thing(command));
    }
    match catalog.find(asked) {
        Found::One(thing) if thing.kind == Kind::Field => field(&thing.name.clone(), *thing),
        Found::One(thing) => Ok(Answer::Thing(thing)),
        Found::Several(names) => {
            Err(format!("{asked:?} is the name of several things; say which:\n  {}", names.join("\n  ")))
        }
        Found::Nothing(mut near) => {
            // A wrong kind in front of a right name.
            if let Some(Found::One(meant)) = asked.split_once('.').map(|(_, name)| catalog.find(name)) {
                near.insert(0, meant.full_name());
            }
            Err(match near.is_empty() {
                true => format!("nothing is called {asked:?}; `seedling explain` lists what can be asked"),
                false => format!(
                    "nothing is called {asked:?}; did you mean one of these?\n  {}",
                    near.join("\n  ")
                ),
            })
        }
    }
}

fn field(path: &str, described: Description) -> Result<Answer, String> {
    let asked = if path.is_empty() { "installconfig".into() } else { format!("installconfig.{path}") };
    Ok(Answer::Field(seedling_assets::config::explain(&asked)?, Box::new(described)))
}

impl Answer {
    fn text(&self) -> String {
        match self {
            Answer::Overview(all) => overview(all),
            Answer::Thing(thing) => thing.page(),
            Answer::Field(page, _) => page.clone(),
        }
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        match self {
            Answer::Overview(all) => {
                let kinds = Kind::ALL.into_iter().map(|kind| {
                    let of = all.iter().filter(|d| d.kind == kind);
                    let names: Vec<_> = of.map(|d| json!({"name": d.full_name(), "what": d.what})).collect();
                    (kind.word().to_string(), json!({"about": kind.about(), "names": names}))
                });
                serde_json::to_string_pretty(&kinds.collect::<Map<_, _>>())
            }
            Answer::Thing(thing) | Answer::Field(_, thing) => serde_json::to_string_pretty(thing),
        }
    }
}

/// The kinds, and the names of those that have not too many.
fn overview(all: &[Description]) -> String {
    let mut text = "seedling explain NAME\n".to_string();
    for kind in Kind::ALL {
        text += &format!("\n{}.NAME: {}\n", kind.word(), kind.about());
        // Of fields the outermost: there are hundreds.
        let listed = |d: &&Description| d.kind == kind && !(kind == Kind::Field && d.name.contains('.'));
        let names: Vec<_> = all.iter().filter(listed).map(|d| d.name.as_str()).collect();
        for line in lines_of(&names) {
            text += &format!("  {line}\n");
        }
    }
    text + "\nThe kind may be left out where one thing has the name. -o json has everything of a name.\n"
}

fn lines_of(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + name.len() <= 98 => *line += &format!(", {name}"),
            _ => lines.push(name.to_string()),
        }
    }
    lines
}
