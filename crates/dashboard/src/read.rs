//! A lab's files, as they are now: everything but what the API knows. Nobody is asked and nothing is changed.

use crate::inputs::{Asked, Certificate, Inputs};
use seedling_lab::{Lab, read_events};
use seedling_machines::Machine;
use seedling_types::{Role, paths};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use time::format_description::well_known::Rfc3339;
use tokio::process::Command;
use tokio::time::timeout;

/// Of a machine's files with certificates so many at most, none larger than this, none deeper.
const MOST_CERTIFICATES: usize = 200;
const LARGEST_CERTIFICATE: u64 = 64 << 10;
const DEEPEST: usize = 6;
/// As much of a log as is shown.
const LOG_TAIL: u64 = 48 << 10;
const LOG_LINES: u32 = 200;
const LOG_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn read(lab: &Lab) -> Inputs {
    let (spec, bring_up) = (&lab.record.spec, lab.bring_up());
    let machines = lab.machines();
    let journals = machines.iter().map(|m| (m.name.clone(), lab.journal(&m.name)));
    let configs = machines.iter().map(|m| (m.name.clone(), asked(&m.on_disk(paths::MCS_AUDIT_LOG))));
    Inputs {
        lab: spec.name.clone(),
        domain: spec.cluster_domain.to_string(),
        inventory: spec.inventory.clone(),
        started: bring_up.started_unix_millis,
        finished: !bring_up.stages.is_empty(),
        milestones: bring_up.milestones,
        journals: journals.collect(),
        events: read_events(&lab.helper_events()),
        configs: configs.filter(|(_, asked)| !asked.is_empty()).collect(),
        ..Inputs::default()
    }
}

/// Changes whenever one of the files that `read` reads does. Overlay file systems do not tell of writes to their upper directory, so
/// there is nothing to wait for: it is looked at.
pub(crate) fn signature(lab: &Lab) -> Vec<Option<(u64, SystemTime)>> {
    let machines = lab.machines().into_iter();
    let own = machines.flat_map(|m| [m.on_disk(paths::JOURNAL), m.on_disk(paths::MCS_AUDIT_LOG)]);
    let files = own.chain([lab.helper_events(), lab.bring_up_file(), lab.dir.join("lab.json")]);
    let look = |path: PathBuf| fs::metadata(path).ok().and_then(|m| Some((m.len(), m.modified().ok()?)));
    files.map(look).collect()
}

fn asked(audit: &Path) -> Vec<Asked> {
    let text = fs::read_to_string(audit).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Of all machines, from their disks: the kubelets' own, and what installers wrote. Keys are in other files, or passed over.
pub(crate) fn certificates(lab: &Lab) -> Vec<Certificate> {
    let role = |name: &str| lab.record.spec.inventory.by_name(name).map(|host| host.role);
    let found = lab.machines().into_iter().flat_map(|machine| {
        let mut files = vec![machine.dir.join("kubelet/pki/kubelet-client-current.pem")];
        files.push(machine.dir.join("kubelet/pki/kubelet-server-current.pem"));
        // Bootstrap's go with it, and a worker has no others.
        if role(&machine.name) == Some(Role::Master) {
            let above = machine.on_disk(paths::STATIC_POD_RESOURCES);
            walk(&above, DEEPEST, &mut files);
        }
        files.truncate(MOST_CERTIFICATES);
        files.into_iter().filter_map(move |file| certificate(&machine, &file)).collect::<Vec<_>>()
    });
    found.collect()
}

fn walk(dir: &Path, deep: usize, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && deep > 0 {
            walk(&path, deep - 1, files);
        } else if kind.is_file()
            && path.extension().is_some_and(|e| e == "crt")
            && files.len() < MOST_CERTIFICATES
        {
            files.push(path);
        }
    }
}

fn certificate(machine: &Machine, file: &Path) -> Option<Certificate> {
    if fs::metadata(file).ok()?.len() > LARGEST_CERTIFICATE {
        return None;
    }
    let first = seedling_pki::certificates(&fs::read_to_string(file).ok()?).ok()?.into_iter().next()?;
    let resources = machine.on_disk(paths::STATIC_POD_RESOURCES);
    let name = file.strip_prefix(&resources).or_else(|_| file.strip_prefix(&machine.dir)).unwrap_or(file);
    let kubelet = file.starts_with(machine.dir.join("kubelet"));
    Some(Certificate {
        place: machine.name.clone(),
        name: name.display().to_string(),
        issued: first.not_before.format(&Rfc3339).ok()?,
        ends: first.not_after.format(&Rfc3339).ok()?,
        renewed_from: None,
        by: if kubelet { "the kubelet itself".into() } else { "its operator, with a new revision".into() },
    })
}

/// The end of the helper's log, or of a machine's: its console and then its systemd journal, from its disk. Whole lines, without colours.
pub(crate) async fn log_tail(lab: &Lab, node: &str) -> Option<String> {
    if node == "helper" {
        return tail(&lab.helper_log());
    }
    let machine = lab.machine(node).ok()?;
    let console = tail(&machine.console_log());
    let journal = machine.on_disk("/var/log/journal");
    if !journal.exists() {
        return console;
    }
    let mut command = Command::new("journalctl");
    command.arg("--directory").arg(journal).args(["--no-pager", "--quiet", "--output=short-precise"]);
    command.arg(format!("--lines={LOG_LINES}")).stdin(Stdio::null()).kill_on_drop(true);
    let said = timeout(LOG_WITHIN, command.output()).await.ok()?.ok()?;
    let said = plain(&String::from_utf8_lossy(&said.stdout));
    Some(console.unwrap_or_default() + &said)
}

fn tail(path: &Path) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes).ok()?;
    let text = plain(&String::from_utf8_lossy(&bytes));
    let cut = if length > LOG_TAIL { text.find('\n').map_or(0, |at| at + 1) } else { 0 };
    Some(text[cut..].to_string())
}

/// Without what moves a terminal's cursor or colours its text.
fn plain(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {}
            }
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(plain("\u{1b}[0;32m  OK  \u{1b}[0m Started\r\n\u{1b}[1G"), "  OK   Started\n");
    }

    proptest! {
        #[test]
        fn anything_becomes_plain(text in ".{0,200}") {
            prop_assert!(plain(&text).chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
