//! The same of a cluster that is no lab's. Its machines are asked by ssh for their journals; the helper's events are read if it runs on
//! this machine. From afar nobody knows a machine's power: one that does not answer is a fact, and no more.

use super::{Awaited, ClusterView, Mark, Overview, ask, assemble};
use crate::bring_up::MEMBER_REMOVED;
use crate::probe::BringUp;
use crate::status::{HelperStatus, Place, open_in};
use crate::{NodeStatus, Position, Status, boot_chain};
use futures::future::join_all;
use seedling_checks::Shell;
use seedling_machines::{Inspection, Power};
use seedling_steps::journal::{State, fold, lines};
use seedling_steps::run_script;
use seedling_types::helper::HelperEvent;
use seedling_types::{Host, Role, paths};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A machine that is silent must not hold up the rest.
const SILENT: Duration = Duration::from_secs(10);

/// Where to look.
pub struct Site<'a> {
    pub name: String,
    pub hosts: Vec<Host>,
    pub shell: &'a dyn Shell,
    /// As the kubeconfig has it.
    pub api: Option<String>,
    pub kubeconfig: PathBuf,
    /// With its events, if it is on this machine.
    pub helper: Option<(HelperStatus, Vec<HelperEvent>)>,
}

/// A machine's journal, or why it could not be had.
type Asked = Result<State, String>;

pub async fn elsewhere(site: Site<'_>) -> Overview {
    let asked = join_all(site.hosts.iter().map(|host| journal(site.shell, host)));
    let (asked, cluster) = tokio::join!(asked, ask(&site.kubeconfig));
    overview_of(site, &asked, cluster)
}

async fn journal(shell: &dyn Shell, host: &Host) -> Asked {
    // A machine in its first boot has none yet; that it answers is told by the last line.
    let script = format!("cat {} 2>/dev/null; echo; echo answers", paths::JOURNAL);
    let printed = run_script(shell.bash(host), &script, SILENT).await?;
    match printed.stdout.ends_with(b"answers\n") {
        true => Ok(fold(&lines(&printed.stdout))),
        false => Err(printed.last_complaint().unwrap_or("ssh ended without an answer").into()),
    }
}

/// Pure.
fn overview_of(site: Site, asked: &[Asked], cluster: ClusterView) -> Overview {
    let (helper, events) = site.helper.unzip();
    let seen_by_helper = events.as_deref();
    let nodes = site.hosts.iter().zip(asked).map(|(host, asked)| node(host, asked, seen_by_helper)).collect();
    let status = Status {
        name: site.name,
        place: Place::Elsewhere,
        api: site.api,
        kubeconfig: Some(site.kubeconfig),
        helper,
        nodes,
    };
    let journals: BTreeMap<_, _> = site.hosts.iter().zip(asked).filter_map(journal_of).collect();
    let earliest = journals.values().filter_map(began).min();
    let awaited = awaited(&site.hosts, &journals, &cluster);
    let times = BringUp { milestones: left(&site.hosts, &journals), ..BringUp::default() };
    let mut view = assemble(status, cluster, &times, &journals, seen_by_helper.unwrap_or_default());
    view.started = view.started.or(earliest);
    view.awaited = awaited;
    for (progress, asked) in view.progress.iter_mut().zip(asked) {
        // The first and the last of the marks are the helper's to tell, the others the machine's.
        let last = progress.marks.len() - 1;
        for (n, mark) in progress.marks.iter_mut().enumerate().filter(|(_, mark)| **mark == Mark::Pending) {
            let told = if n == 0 || n == last { seen_by_helper.is_some() } else { asked.is_ok() };
            if !told {
                *mark = Mark::Unknown;
            }
        }
    }
    view
}

fn journal_of((host, asked): (&Host, &Asked)) -> Option<(String, State)> {
    Some((host.name.clone(), asked.as_ref().ok()?.clone()))
}

fn began(state: &State) -> Option<i64> {
    let steps = state.services.iter().flat_map(|service| &service.steps);
    steps.flat_map(|step| step.runs.first()).map(|(from, _)| *from).min()
}

fn node(host: &Host, asked: &Asked, events: Option<&[HelperEvent]>) -> NodeStatus {
    let position = boot_chain(events.unwrap_or_default(), host);
    let booted = asked.as_ref().is_ok_and(|state| !state.services.is_empty());
    let says = match asked {
        Ok(_) if booted => "booted".into(),
        Ok(_) => "answers, and has no journal yet".into(),
        Err(_) if events.is_some() && position != Position::Fetched => position.says(),
        Err(why) => format!("does not answer: {why}"),
    };
    let on = || Inspection { power: Power::On, pid: None, usage: Default::default() };
    let Host { name, role, mac, address, .. } = host.clone();
    NodeStatus {
        name,
        role,
        kind: "machine",
        mac,
        address,
        inspection: asked.is_ok().then(on),
        position,
        first_boot_done: booted,
        open: asked.as_ref().map(open_in).unwrap_or_default(),
        says,
    }
}

fn of_bootstrap<'a>(hosts: &[Host], journals: &'a BTreeMap<String, State>) -> Option<&'a State> {
    journals.get(&hosts.iter().find(|host| host.role == Role::Bootstrap)?.name)
}

/// When etcd left the bootstrap machine, by its own journal: the first milestone that the drawing needs.
fn left(hosts: &[Host], journals: &BTreeMap<String, State>) -> Vec<(String, f64)> {
    let done = of_bootstrap(hosts, journals)
        .and_then(|state| state.step("bootkube", "wait-for-ceo"))
        .filter(|step| step.was_done);
    done.map(|step| (MEMBER_REMOVED.to_string(), step.since as f64 / 1000.0)).into_iter().collect()
}

/// What bootkube is at; after it, the operators that are not done.
fn awaited(hosts: &[Host], journals: &BTreeMap<String, State>, cluster: &ClusterView) -> Option<Awaited> {
    let at_work = of_bootstrap(hosts, journals).into_iter().flat_map(State::open);
    let bootkube = at_work.filter(|(who, _)| *who == "bootkube").map(|(_, step)| step).next();
    if let Some(step) = bootkube {
        return Some(Awaited { what: format!("bootkube's {}", step.name), since: step.since });
    }
    let late: Vec<_> = cluster.operators.iter().filter(|operator| !operator.ok).collect();
    // One that has not reported anything is awaited from the beginning.
    let since =
        late.iter().map(|operator| operator.since.or_else(|| journals.values().filter_map(began).min()));
    let since = since.min()?.unwrap_or_default();
    let names: Vec<_> = late.iter().map(|operator| operator.name.as_str()).collect();
    Some(Awaited { what: format!("operators: {}", names.join(", ")), since })
}

#[cfg(test)]
#[path = "elsewhere_tests.rs"]
mod tests;
