//! From machines that are switched on to a cluster that works: each milestone is waited for, told and written down.

use crate::probe::BringUp as Times;
use crate::{Lab, LabError, NodeStatus, at, probe, read_events, status};
use kube::Client;
use seedling_machines::Progress;
use seedling_observe::{Milestone, News};
use seedling_steps::journal::fold;
use seedling_steps::{Condition, stage_seconds, write_atomic};
use seedling_types::helper::{HelperEvent, HelperEventKind};
use seedling_types::node_report::{FIRST_BOOT_FILE, FirstBoot};
use seedling_types::{Host, Role};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// When nothing moves for this long the bring-up has failed; a slow machine still moves. Longer than the operators' patience with a
/// master that does not come.
const NO_PROGRESS: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(250);
/// An emulated machine that is busy needs so long to let somebody in.
const SSH_WITHIN: Duration = Duration::from_secs(60);
const FETCH: Duration = Duration::from_secs(5);

const SWITCHED_ON: &str = "machines switched on";
pub(crate) const MEMBER_REMOVED: &str = Milestone::BootstrapMemberRemoved.awaited().sentence;
const SWITCHED_OFF: &str = "bootstrap node switched off";

/// Milestones in their order, by the beginning of their names. The last one is reached only where there are workers.
pub(crate) const AWAITED: [&str; 9] = [
    SWITCHED_ON,
    Milestone::ApiUp.awaited().sentence,
    Milestone::MastersJoined(0).awaited().sentence,
    Milestone::EtcdOnMasters.awaited().sentence,
    Milestone::BootstrapComplete.awaited().sentence,
    MEMBER_REMOVED,
    SWITCHED_OFF,
    Milestone::Initialized.awaited().sentence,
    Milestone::WorkersReady(0).awaited().sentence,
];

pub struct BringUp<'a> {
    pub lab: Lab,
    started: Instant,
    times: Times,
    client: Client,
    say: Progress<'a>,
}

impl<'a> BringUp<'a> {
    /// The machines have just been switched on; `started` is when that began.
    pub fn begin(lab: Lab, started: Instant, client: Client, say: Progress<'a>) -> Result<Self, LabError> {
        let since = i64::try_from(started.elapsed().as_millis()).unwrap_or_default();
        let times = Times { started_unix_millis: probe::now() - since, ..Times::default() };
        let mut bring_up = Self { lab, started, times, client, say };
        bring_up.reached(SWITCHED_ON, SWITCHED_ON)?;
        Ok(bring_up)
    }

    /// Written down at once, by the name that chaos and the timeline know; people read `says`.
    fn reached(&mut self, milestone: &str, says: &str) -> Result<(), LabError> {
        let seconds = self.started.elapsed().as_secs_f64();
        (self.say)(&format!("{seconds:7.1}s  {says}"));
        self.times.milestones.push((milestone.into(), (seconds * 1000.0).round() / 1000.0));
        self.save()
    }

    fn save(&self) -> Result<(), LabError> {
        let path = self.lab.bring_up_file();
        at(&path, write_atomic(&path, serde_json::to_vec_pretty(&self.times)?, 0o644))
    }

    /// Until the cluster is installed. The bootstrap machine is switched off on the way.
    pub async fn grow(&mut self) -> Result<(), LabError> {
        let masters = self.lab.record.spec.inventory.masters().len();
        self.wait(Milestone::ApiUp, "the API answers").await?;
        self.wait(Milestone::MastersJoined(masters), "the masters have joined").await?;
        self.tell_first_boots();
        self.wait(Milestone::EtcdOnMasters, "etcd runs on the masters").await?;
        self.wait(Milestone::BootstrapComplete, "bootstrapping").await?;
        self.wait(Milestone::BootstrapMemberRemoved, "etcd has left the bootstrap node").await?;
        if let Some(bootstrap) = self.lab.record.spec.inventory.bootstrap() {
            self.lab.machine(&bootstrap.name)?.cut_off().await?;
            self.reached(SWITCHED_OFF, SWITCHED_OFF)?;
        }
        self.wait(Milestone::Initialized, "all operators have finished").await?;
        match self.lab.record.spec.inventory.role(Role::Worker).count() {
            0 => Ok(()),
            workers => {
                let ready = Milestone::WorkersReady(workers);
                self.wait(ready, "the workers have joined").await
            }
        }
    }

    /// What the machines found out about themselves.
    fn tell_first_boots(&self) {
        for machine in self.lab.machines() {
            let report = std::fs::read(machine.on_disk(FIRST_BOOT_FILE)).ok();
            let report = report.and_then(|json| serde_json::from_slice::<FirstBoot>(&json).ok());
            for finding in report.into_iter().flat_map(|r| r.findings) {
                (self.say)(&format!("warning: {}: {finding}", machine.name));
            }
        }
    }

    /// `says` is for people, when it is reached.
    async fn wait(&mut self, milestone: Milestone, says: &str) -> Result<(), LabError> {
        let awaited = milestone.awaited();
        // The milestones tell; what the machines are at in between is in `lab status` and `lab journal`.
        let hint = format!("seedling lab journal --name {}", self.lab.record.spec.name);
        let condition = Condition::new(awaited, NO_PROGRESS, hint).quiet();
        let (lab, mut at_work) = (&self.lab, AtWork::default());
        let fetching = keep_fetching(lab);
        let instead = |news: &News| match (milestone, news.text.as_str()) {
            // An API that does not answer yet fails in many ways, none of which is progress.
            (Milestone::ApiUp, _) | (_, "") => at_work.look(lab),
            (_, text) => format!("{} ({text})", at_work.look(lab)),
        };
        let waiting = milestone.wait(&self.client, &condition, POLL, instead);
        let met = tokio::select! {
            met = waiting => met,
            never = fetching => match never {},
        };
        match met {
            Ok(seen) => self.reached(&format!("{}: {seen}", awaited.sentence), &format!("{says}: {seen}")),
            Err(unmet) => Err(LabError::NotGrown(format!("{unmet}\n{}", chains(&self.lab).await))),
        }
    }

    pub fn finish(&mut self) -> Result<(), LabError> {
        self.times.stages = stage_seconds(&self.lab.bootkube_record());
        (self.say)("bootkube's stages:");
        for (stage, seconds) in &self.times.stages {
            (self.say)(&format!("{seconds:7.1}s  {stage}"));
        }
        self.save()?;
        let (seconds, file) = (self.started.elapsed().as_secs_f64(), self.lab.bring_up_file());
        (self.say)(&format!("{seconds:7.1}s  the cluster is ready; times are in {}", file.display()));
        Ok(())
    }
}

/// What QEMU machines have done is asked of them meanwhile.
async fn keep_fetching(lab: &Lab) -> std::convert::Infallible {
    loop {
        lab.fetch_journals(SSH_WITHIN).await;
        tokio::time::sleep(FETCH).await;
    }
}

/// What the machines are at, said anew only when one of them has come further: a step that is tried again and again does not count.
#[derive(Default)]
struct AtWork {
    progress: Vec<(usize, usize)>,
    /// Of QEMU machines, which have no journal before they are installed: how many different things each asked the helper for.
    asked: Vec<usize>,
    asked_at: Option<Instant>,
    says: String,
}

impl AtWork {
    fn look(&mut self, lab: &Lab) -> String {
        let hosts = &lab.record.spec.inventory.hosts;
        let states: Vec<_> = hosts.iter().map(|h| (&h.name, fold(&lab.journal(&h.name)))).collect();
        let progress: Vec<_> = states.iter().map(|(_, state)| state.progress()).collect();
        let asked = match self.asked_at.filter(|at| at.elapsed() < FETCH) {
            Some(_) => self.asked.clone(),
            None => {
                self.asked_at = Some(Instant::now());
                asked(lab)
            }
        };
        if (&self.progress, &self.asked) != (&progress, &asked) {
            let open = states.iter().flat_map(|(node, state)| {
                state.open().map(move |(who, step)| format!("{node}: {who} is at {}", step.name))
            });
            let booting =
                hosts.iter().filter(|host| lab.record.spec.kinds.contains_key(&host.name)).zip(&asked);
            let booting =
                booting.map(|(host, asked)| format!("{} asked the helper for {asked} things", host.name));
            self.says = open.chain(booting).collect::<Vec<_>>().join(", ");
            (self.progress, self.asked) = (progress, asked);
        }
        match self.says.is_empty() {
            true => "no machine has an open step in its journal".into(),
            false => self.says.clone(),
        }
    }
}

fn asked(lab: &Lab) -> Vec<usize> {
    let spec = &lab.record.spec;
    let hosts: Vec<_> = spec.inventory.hosts.iter().filter(|h| spec.kinds.contains_key(&h.name)).collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    let events = read_events(&lab.helper_events());
    hosts.iter().map(|host| different_questions(&events, host)).collect()
}

/// What is asked for again and again is no progress. Pure.
fn different_questions(events: &[HelperEvent], host: &Host) -> usize {
    let what = |event: &HelperEvent| match &event.what {
        HelperEventKind::Dhcp { message, mac, .. } if mac.eq_ignore_ascii_case(&host.mac) => {
            Some(message.clone())
        }
        HelperEventKind::Tftp { file, remote, .. } if host.is_at(*remote) => Some(file.clone()),
        HelperEventKind::Http { path, remote, .. } | HelperEventKind::Registry { path, remote, .. }
            if host.is_at(*remote) =>
        {
            Some(path.clone())
        }
        HelperEventKind::Boot { host: of, state, .. } if *of == host.name => Some(format!("{state:?}")),
        HelperEventKind::Connection { backend, remote, .. } if host.is_at(*remote) => Some(backend.clone()),
        _ => None,
    };
    events.iter().filter_map(what).collect::<BTreeSet<_>>().len()
}

/// Where each machine's boot stands, for the message of a failed bring-up.
async fn chains(lab: &Lab) -> String {
    match status(lab).await {
        Ok(status) => {
            let at = |n: &NodeStatus| n.open.iter().map(|o| format!("; {o}")).collect::<String>();
            status
                .nodes
                .iter()
                .map(|n| format!("  {}: {}{}", n.name, n.says, at(n)))
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(e) => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_twice_is_no_progress() {
        let host = Host {
            name: "w".into(),
            role: Role::Worker,
            mac: "52:54:00:5e:ed:1b".into(),
            address: [192, 168, 100, 21].into(),
            second_address: None,
        };
        let event = |what| HelperEvent { time: String::new(), what };
        let file = |path: &str, last: u8| {
            event(HelperEventKind::Registry {
                method: "GET".into(),
                path: path.into(),
                status: 200,
                remote: [192, 168, 100, last].into(),
                host: None,
            })
        };
        let mut events = vec![file("/v2/a", 21), file("/v2/a", 21), file("/v2/b", 22)];
        assert_eq!(different_questions(&events, &host), 1);
        events.push(file("/v2/b", 21));
        let mac = "52:54:00:5E:ED:1B".into();
        events.push(event(HelperEventKind::Dhcp { message: "ACK".into(), mac, host: None, address: None }));
        assert_eq!(different_questions(&events, &host), 3);
    }
}
