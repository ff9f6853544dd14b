//! What a lab looks like now: machines from runc or QEMU, the boot chain from the helper's event log.

use crate::{Lab, LabError, Position, boot_chain, helper};
use futures::future::try_join_all;
use seedling_machines::{Inspection, Machine, Power};
use seedling_steps::journal::{State, fold};
use seedling_types::helper::HelperEvent;
use seedling_types::{Host, Role};
use serde::Serialize;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

/// A machine that does not answer by ssh must not hold up the rest.
const FETCH_WITHIN: Duration = Duration::from_secs(4);

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub name: String,
    pub place: Place,
    /// Where it is reached from here.
    pub api: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    /// None: not on this machine.
    pub helper: Option<HelperStatus>,
    pub nodes: Vec<NodeStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Lab,
    /// Machines that somebody else switches on, asked by ssh.
    Elsewhere,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelperStatus {
    pub pid: Option<i32>,
    pub ready: bool,
    pub address: IpAddr,
}

impl NodeStatus {
    /// None: nobody knows.
    pub fn power(&self) -> Option<Power> {
        self.inspection.as_ref().map(|inspection| inspection.power)
    }
}

impl HelperStatus {
    /// Of one that this machine runs with its own configuration, or does not.
    pub fn here(config: &Path, address: IpAddr) -> Self {
        let pid = helper::find(config).first().map(|p| p.pid);
        Self { pid, ready: pid.is_some(), address }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    pub name: String,
    pub role: Role,
    /// `container`, `qemu` or, elsewhere, `machine`.
    pub kind: &'static str,
    pub mac: String,
    pub address: IpAddr,
    /// None: a machine elsewhere that does not answer. It may be off.
    #[serde(flatten)]
    pub inspection: Option<Inspection>,
    #[serde(flatten)]
    pub position: Position,
    /// Ignition has been applied; systemd has been started.
    pub first_boot_done: bool,
    /// What is worked on, by the machine's journal.
    pub open: Vec<Open>,
    /// For people.
    pub says: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    pub who: String,
    pub step: String,
    pub since_unix_millis: i64,
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let seconds = (crate::probe::now() - self.since_unix_millis) / 1000;
        write!(f, "{} is at {} for {seconds} s", self.who, self.step)
    }
}

/// Of a machine that runs.
pub fn open(lab: &Lab, node: &str) -> Vec<Open> {
    open_in(&fold(&lab.journal(node)))
}

pub(crate) fn open_in(state: &State) -> Vec<Open> {
    let open = state.open().map(|(who, step)| Open {
        who: who.into(),
        step: step.name.clone(),
        since_unix_millis: step.since,
    });
    open.collect()
}

pub async fn status(lab: &Lab) -> Result<Status, LabError> {
    lab.fetch_journals(FETCH_WITHIN).await;
    let events = read_events(&lab.helper_events());
    let spec = &lab.record.spec;
    let nodes = spec.inventory.hosts.iter().map(async |host| {
        let machine = lab.machine(&host.name)?;
        let mut status =
            node(host, &machine, machine.inspect().await?, lab.has_its_config(&machine), &events);
        if status.power() == Some(Power::On) {
            status.open = open(lab, &host.name);
        }
        Ok::<_, LabError>(status)
    });
    let helper = HelperStatus::here(&lab.helper_config(), spec.helper);
    Ok(Status {
        name: spec.name.clone(),
        place: Place::Lab,
        api: lab.record.api.map(|address| address.to_string()),
        kubeconfig: Some(lab.kubeconfig()).filter(|path| path.exists()),
        helper: Some(HelperStatus { ready: helper.ready && lab.helper_ready().exists(), ..helper }),
        nodes: try_join_all(nodes).await?,
    })
}

fn node(
    host: &Host,
    machine: &Machine,
    inspection: Inspection,
    has_its_config: bool,
    events: &[HelperEvent],
) -> NodeStatus {
    let position = boot_chain(events, host);
    // Of a QEMU machine only what it asked for is known.
    let (kind, first_boot_done) = match machine {
        Machine::Container(_) => ("container", has_its_config),
        Machine::Qemu(_) => ("qemu", has_its_config && position == Position::Fetched),
    };
    let says = match (inspection.power, first_boot_done) {
        (Power::Off, false) if position == Position::NoDhcp => "never booted".into(),
        (Power::Off, false) => format!("stopped in its first boot: {}", position.explain(&host.name)),
        (Power::Off, true) => "switched off".into(),
        (Power::Paused, _) => "frozen".into(),
        (Power::On, true) => "booted".into(),
        (Power::On, false) if position == Position::Fetched => "applies its configuration".into(),
        (Power::On, false) => position.explain(&host.name),
    };
    let Host { name, role, mac, address, .. } = host.clone();
    let inspection = Some(inspection);
    NodeStatus { name, role, kind, mac, address, inspection, position, first_boot_done, open: vec![], says }
}

/// A line that is being written, or of a newer version, is left out.
pub fn read_events(path: &Path) -> Vec<HelperEvent> {
    // What became too long was put aside; of it, too, machines' boots are told.
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let text = read(&HelperEvent::older(path)) + &read(path);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
