//! The machine that the helper is installed on, its clients, and what both are told.

use anyhow::{Context, Result, ensure};
use seedling_lab::{Lab, LabSpec, default_inventory};
use seedling_machines::Machine;
use seedling_machines::network::Network;
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use seedling_types::ClusterDomain;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const UNIT: &str = "seedling-helper.service";
pub(crate) const HERE: &str = "10.99.0.1";
/// Of worker-0, as which the client at the other end of the wire asks.
pub(crate) const MAC: &str = "52:54:00:00:99:21";
pub(crate) const ADDRESS: &str = "10.99.0.21";
/// Slow enough to be under way while things happen.
pub(crate) const LARGE_BYTES: usize = 12 << 20;
const HOSTS: &str = "hosts:
- {name: bootstrap, role: bootstrap, mac: '52:54:00:00:99:10', address: 10.99.0.10}
- {name: master-0, role: master, mac: '52:54:00:00:99:11', address: 10.99.0.11}
- {name: worker-0, role: worker, mac: '52:54:00:00:99:21', address: 10.99.0.21}
";

/// The machine, and the namespace at the other end of its second wire.
pub(crate) struct Site {
    machine: Machine,
    client: String,
}

/// Machines that fetch this program and do nothing else.
pub(crate) fn spec(folder: &Path, name: &str, program: &Path) -> Result<LabSpec> {
    let (assets, release) = (folder.join("assets"), folder.join("release"));
    for folder in [&assets, &release.join("bin"), &release.join("oci/blobs/sha256")] {
        fs::create_dir_all(folder)?;
    }
    fs::copy(program, release.join("bin/seedling"))?;
    fs::write(release.join("oci/index.json"), r#"{"schemaVersion":2,"manifests":[]}"#)?;
    fs::write(release.join("oci/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let source = "http://helper.unit.example.com:8080/bin/seedling";
    let file = json!({"path": "/usr/local/bin/seedling", "mode": 0o755, "contents": {"source": source}});
    let ignition = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}).to_string();
    for role in ["bootstrap", "master"] {
        fs::write(assets.join(format!("{role}.ign")), &ignition)?;
    }
    let domain = ClusterDomain::new("unit", "example.com");
    Ok(LabSpec::new(name, domain, default_inventory(1), assets, release)?)
}

impl Site {
    /// Waits for the machine, gives it a second network card, and lays out a cluster's files on it.
    pub(crate) async fn new(lab: &Lab, name: &str) -> Result<Self> {
        let site = Self { machine: lab.machine("master-0")?, client: format!("{name}-client") };
        site.until("systemd to run on the machine", "systemctl is-system-running").await?;
        let (machine, client) = (Network::of_lab(name).node_namespace("master-0"), &site.client);
        sh(&format!(
            "ip netns add {client} && ip -n {client} link set lo up &&
             ip link add name helper0 netns {machine} type veth peer name eth0 netns {client} &&
             ip -n {machine} addr add {HERE}/24 dev helper0 && ip -n {machine} link set helper0 up &&
             ip -n {client} link set eth0 address {MAC} up"
        ))?;
        let large = format!("head -c {LARGE_BYTES} /dev/zero");
        site.on(&format!(
            "mkdir -p /root/site /var/cache/seedling/release/bin /var/cache/seedling/release/oci /var/lib/seedling/boot
             cat > /root/site/hosts.yaml <<'END'\n{HOSTS}END
             for role in bootstrap master worker; do echo {{\\\"role\\\": \\\"$role\\\"}} > /root/site/$role.ign; done
             cd /var/lib/seedling/boot
             for file in vmlinuz initramfs.img undionly.kpxe ipxe.efi; do echo $file > $file; done
             {large} > rootfs.squashfs"
        ))
        .await?;
        Ok(site)
    }

    /// What a shell on the machine prints.
    pub(crate) async fn on(&self, script: &str) -> Result<String> {
        Ok(self.machine.exec_output(&["bash", "-euo", "pipefail", "-c", script]).await?.trim().to_string())
    }

    pub(crate) async fn pid(&self) -> Result<u32> {
        Ok(self.on(&format!("systemctl show -P MainPID {UNIT}")).await?.parse()?)
    }

    /// Until the machine says `running`.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Result<()> {
        static SITE: Awaited = Awaited::in_test("WHAT");
        let hint = "see the machine's journal";
        let condition = Condition::within(&SITE, Duration::from_secs(60), hint).with("WHAT", what);
        let look = async || match self.on(script).await {
            Ok(said) if said == "running" => Probe::Met(()),
            said => Probe::Unmet(format!("{said:?}")),
        };
        Ok(wait_for(&condition, Duration::from_millis(100), look).await?)
    }

    /// What a command at the other end of the wire prints.
    pub(crate) fn client(&self, script: &str) -> Result<String> {
        sh(&format!("ip netns exec {} sh -c {}", self.client, quoted(script)))
    }

    /// Takes some seconds.
    pub(crate) fn download(&self) -> Result<Child> {
        let url = format!("http://{HERE}:8080/boot/rootfs.squashfs");
        let curl = [
            "curl",
            "-sS",
            "--limit-rate",
            "3M",
            "--interface",
            ADDRESS,
            "-o",
            "/dev/null",
            "-w",
            "%{size_download}",
        ];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.client]).args(curl).arg(url);
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// The address that a machine gets which nobody knows.
    pub(crate) fn stranger(&self) -> Result<String> {
        self.client(
            "ip link add link eth0 name other address 52:54:00:00:99:99 type macvlan && ip link set other up",
        )?;
        let said = self.client("busybox udhcpc -f -q -n -t 10 -i other -s /bin/true 2>&1");
        self.client("ip link del other")?;
        let said = said?;
        let address = said.split("lease of ").nth(1).and_then(|rest| rest.split_whitespace().next());
        Ok(address.with_context(|| said.clone())?.trim_end_matches(',').to_string())
    }
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', r"'\''"))
}

/// What it printed, errors behind it.
pub(crate) fn sh(script: &str) -> Result<String> {
    let out = Command::new("sh").args(["-c", script]).output()?;
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    ensure!(out.status.success(), "{script}: {}\n{text}{}", out.status, String::from_utf8_lossy(&out.stderr));
    if text.is_empty() {
        text = String::from_utf8_lossy(&out.stderr).into_owned();
    }
    Ok(text)
}
