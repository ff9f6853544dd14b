//! `seedling lab power`: one machine, some of them, or everything at the same moment.

use super::lab::{Name, say};
use super::log::NoProgress;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use seedling_lab::power::{self, Circuit};
use seedling_lab::{Lab, Labs};
use seedling_types::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    On,
    /// Shut down, as by its power button
    Off,
    /// Pull the plug
    Kill,
    /// Freeze it until it is switched on
    Pause,
}

/// What the words of `lab power` ask for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    One(&'a str, To),
    Cut(&'a [String]),
    On(&'a [String]),
}

fn wish(words: &[String]) -> Result<Wish<'_>> {
    match words {
        [cut, nodes @ ..] if cut == "cut" => Ok(Wish::Cut(nodes)),
        [on, nodes @ ..] if on == "on" => Ok(Wish::On(nodes)),
        [node, to] => match To::from_str(to, false) {
            Ok(to) => Ok(Wish::One(node, to)),
            Err(_) => bail!("{to:?} is neither on, off, kill nor pause"),
        },
        _ => bail!(
            "say NODE and on, off, kill or pause; or cut or on, and machines: seedling lab power --help"
        ),
    }
}

pub(super) async fn run(labs: &Labs, lab: &Lab, words: &[String]) -> Result<()> {
    match wish(words)? {
        Wish::One(node, To::On) => lab.switch_on(node).await?,
        Wish::One(node, To::Off) => lab.machine(node)?.switch_off().await?,
        Wish::One(node, To::Kill) => lab.machine(node)?.cut_off().await?,
        Wish::One(node, To::Pause) => lab.machine(node)?.pause().await?,
        Wish::Cut(nodes) => {
            let was_on = power::cut(lab, &Circuit::of(lab, nodes)?).await?;
            let helper = if was_on.helper { ", and the helper" } else { "" };
            eprintln!(
                "without power: {}{helper}; `seedling lab power on` gives it back",
                was_on.nodes.join(", ")
            );
        }
        Wish::On(nodes) => {
            let circuit = match nodes {
                [] => Circuit::cut(lab).context("nothing was cut; name the machines to switch on")?,
                nodes => Circuit::of(lab, nodes)?,
            };
            power::restore(labs, lab, &circuit, &seedling_lab::Options::this_program()?).await?;
        }
    }
    Ok(())
}

/// In an order in which nobody misses what he needs: pods' nodes, the control plane, the helper.
pub(super) async fn stop(labs: &Labs, lab: &Lab) -> Result<()> {
    let was_on = power::stop(labs, lab, &say).await?;
    match was_on.nodes.is_empty() {
        true => say("nothing was on"),
        false => say(&format!(
            "off: {}, and the helper; `seedling lab start` switches them on",
            was_on.nodes.join(", ")
        )),
    }
    Ok(())
}

#[derive(Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    lab: Name,
    #[command(flatten)]
    no_progress: NoProgress,
}

/// Everything that was on, and the cluster with it.
pub(super) async fn start(labs: &Labs, args: StartArgs) -> Result<()> {
    args.no_progress.configure();
    let name = &args.lab.name;
    let on = power::start(labs, &labs.open(name)?, &seedling_lab::Options::this_program()?, &say).await?;
    let lab = labs.open(name)?;
    let client = seedling_cluster::connect(Some(&lab.kubeconfig())).await?;
    let hint = format!("seedling lab status --name {name}");
    let inventory = &lab.record.spec.inventory;
    for host in on.nodes.iter().filter_map(|node| inventory.by_name(node)) {
        if host.role != Role::Bootstrap {
            super::wait_node::ready(&client, &host.name, &hint, &mut |text| say(text)).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_for_one_some_or_all() {
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let two = words("master-0 master-1");
        for (line, want) in [
            ("master-0 on", Some(Wish::One("master-0", To::On))),
            ("master-0 pause", Some(Wish::One("master-0", To::Pause))),
            ("master-0 kill", Some(Wish::One("master-0", To::Kill))),
            ("cut", Some(Wish::Cut(&[]))),
            ("cut master-0 master-1", Some(Wish::Cut(&two))),
            ("on", Some(Wish::On(&[]))),
            ("on master-0 master-1", Some(Wish::On(&two))),
            ("master-0", None),
            ("master-0 burn", None),
            ("master-0 on now", None),
        ] {
            assert_eq!(wish(&words(line)).ok(), want, "{line}");
        }
    }
}
