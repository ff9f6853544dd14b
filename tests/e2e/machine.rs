//! Machines: DHCP for each MAC, real Ignition from each address, and no trace when they are gone.

use crate::Suite;
use anyhow::{Result, ensure};
use seedling_e2e::Lab;
use std::collections::BTreeSet;

const NODES: [(&str, &str, &str); 4] = [
    ("bootstrap", "52:54:00:5e:ed:10", "192.168.100.10"),
    ("master-0", "52:54:00:5e:ed:11", "192.168.100.11"),
    ("master-1", "52:54:00:5e:ed:12", "192.168.100.12"),
    ("master-2", "52:54:00:5e:ed:13", "192.168.100.13"),
];

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("each_mac_had_its_dhcp_exchange", || {
        let events = lab.events()?;
        for (name, mac, address) in NODES {
            for message in ["DISCOVER", "OFFER", "REQUEST", "ACK"] {
                let seen =
                    events.iter().any(|e| e["event"] == "dhcp" && e["mac"] == mac && e["message"] == message);
                ensure!(seen, "no {message} of {name} ({mac})");
            }
            let given =
                events.iter().any(|e| e["mac"] == mac && e["message"] == "ACK" && e["address"] == address);
            ensure!(given, "{name} was not given {address}");
        }
        Ok(())
    });
    suite.check("real_ignition_fetched_each_config", || {
        let events = lab.events()?;
        for (name, mac, address) in NODES {
            let fetched = events.iter().any(|e| {
                e["event"] == "http"
                    && e["remote"] == address
                    && e["status"] == 200
                    && e["path"] == format!("/ign/{mac}")
                    && e["userAgent"].as_str().is_some_and(|a| a.starts_with("Ignition/"))
            });
            ensure!(fetched, "{name} fetched no config as Ignition");
        }
        let masters: BTreeSet<_> = (events.iter())
            .filter(|e| e["event"] == "connection" && e["port"] == 22623)
            .filter_map(|e| e["remote"].as_str())
            .collect();
        ensure!(masters.len() == 3, "machine-config server was reached from {masters:?}");
        Ok(())
    });
    suite.check("the_machine_config_server_served_ignition", || {
        let log =
            std::fs::read_to_string(lab.dir().join("nodes/bootstrap/upper/var/log/openshift/bootkube.json"))?;
        ensure!(log.contains("mco-bootstrap"), "no record of mco-bootstrap");
        let ignition = lab
            .shell("master-0", "grep -c 'GET https://api-int.*22623/config/master' /var/log/ignition.log")?;
        ensure!(ignition.trim() != "0", "master-0 did not get its config from the machine-config server");
        Ok(())
    });
}

/// A helper whose clock stands still at New Year, and the check that a first boot makes, beside it.
const ANOTHER_TIME: &str = r#"
my $helper = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8099", Listen => 1, ReuseAddr => 1) or die;
exec "seedling", "first-boot", "--helper", "http://127.0.0.1:8099" if fork;
my $asked = $helper->accept;
sysread $asked, $_, 4096;
print $asked "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n";
"#;

/// With a disk that really is slow.
pub(crate) fn trouble_is_said(lab: &Lab) -> Result<()> {
    let machine = seedling_lab::Labs::from_env().open(&lab.name)?.machine("master-0")?;
    machine.slow_disk(true)?;
    let said = lab.exec("master-0", &["perl", "-MIO::Socket::INET", "-e", ANOTHER_TIME]);
    machine.slow_disk(false)?;
    let said = said?;
    ensure!(said.contains("its disk is slow: fdatasync took"), "{said}");
    ensure!(said.contains("s ahead of the helper's"), "{said}");
    Ok(())
}

pub(crate) fn pulled_by_digest(lab: &Lab) -> Result<()> {
    let events = lab.events()?;
    for (name, _, address) in NODES {
        let pulls = events.iter().filter(|e| {
            e["event"] == "registry"
                && e["remote"] == address
                && e["status"] == 200
                && e["path"].as_str().is_some_and(|p| p.contains("/blobs/sha256:"))
        });
        ensure!(pulls.count() > 0, "{name} pulled nothing");
    }
    let tags = events.iter().filter(|e| {
        e["event"] == "registry"
            && e["path"].as_str().is_some_and(|p| p.contains("/manifests/") && !p.contains("sha256:"))
    });
    ensure!(tags.count() == 0, "something was pulled by tag");
    Ok(())
}

/// What a lab could leave on this machine.
#[derive(Debug)]
pub(crate) struct Traces {
    seen: BTreeSet<String>,
    sysctls: Vec<String>,
}

impl Traces {
    pub(crate) fn now() -> Self {
        let mut seen = BTreeSet::new();
        let entries = |dir: &str| {
            let read = std::fs::read_dir(dir).into_iter().flatten().flatten();
            read.map(|e| e.path().display().to_string()).collect::<Vec<_>>()
        };
        seen.extend(entries("/run/netns").into_iter().filter(|n| n.contains("seedling")));
        for controller in entries("/sys/fs/cgroup") {
            seen.extend(entries(&controller).into_iter().filter(|c| c.contains("seedling")));
        }
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        seen.extend(mounts.lines().filter(|l| l.contains("/seedling/labs/")).map(String::from));
        for process in entries("/proc") {
            let command = std::fs::read(format!("{process}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            if command.contains("helper run") || command.contains("/labs/e2e") {
                seen.insert(command);
            }
        }
        let names =
            ["kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "fs/inotify/max_user_instances"];
        let value = |name: &str| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        Self { seen, sysctls: names.iter().map(|n| format!("{n}={}", value(n).trim())).collect() }
    }

    pub(crate) fn same_as(&self, before: &Self) -> Result<()> {
        let left: Vec<_> = self.seen.difference(&before.seen).collect();
        ensure!(left.is_empty(), "left behind: {left:#?}");
        ensure!(self.sysctls == before.sysctls, "settings were {:?}, are {:?}", before.sysctls, self.sysctls);
        Ok(())
    }
}
