//! `verify`, `gather` and `preflight` as of a cluster elsewhere: by somebody who has its asset directory, a key for ssh and a machine in its
//! network, whose DNS server is the helper. Nothing of the lab is asked.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, output, run, seedling, text};
use seedling_machines::network::{BRIDGE, Network, namespace_path};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("verify_by_ssh_is_all_green", || {
        let findings = findings(&mut Admin::of(lab)?.by_ssh("verify"), 0)?;
        let kubelets = findings.iter().filter(|f| f["name"] == "kubelet" && f["result"] == "ok");
        ensure!(kubelets.count() == judge::MASTERS.len(), "{findings:#?}");
        Ok(())
    });
    suite.check("gather_by_ssh_has_the_masters_although_the_bootstrap_machine_is_off", || {
        let admin = Admin::of(lab)?;
        let mut gather =
            admin.seedling("gather", &["bootstrap", "--bootstrap", &admin.address("bootstrap")?]);
        for master in judge::MASTERS {
            gather.args(["--master", &admin.address(master)?]);
        }
        let said = output(gather.arg("--key").arg(&admin.key).arg("--dir").arg(admin.assets()))?;
        let said = text(&said.stdout) + &text(&said.stderr);
        let bundle = said.split_once("captured here \"").and_then(|(_, rest)| rest.split('"').next());
        let files = run(Command::new("tar").args(["-tzf", bundle.context(said.clone())?]))?;
        for master in judge::MASTERS {
            let journal = format!("/control-plane/{}/journals/kubelet.log\n", admin.address(master)?);
            ensure!(files.contains(&journal), "{journal} is not in\n{files}\n{said}");
        }
        ensure!(files.contains("/resources/nodes.json\n"), "the API was not asked:\n{files}\n{said}");
        Ok(())
    });
    suite.check("status_by_ssh_tells_how_far_each_machine_is", || {
        let admin = Admin::of(lab)?;
        let mut status = admin.by_ssh("status");
        let view: Value = serde_json::from_str(&run(status.arg("--helper").arg(admin.lab.helper_config()))?)?;
        ensure!(view["place"] == "elsewhere" && view["awaited"].is_null(), "{view:#}");
        let nodes = view["nodes"].as_array().context("no nodes")?;
        let powers: Vec<_> = nodes.iter().map(|node| node["power"].as_str().unwrap_or("unknown")).collect();
        ensure!(powers == ["unknown", "on", "on", "on"], "{powers:?}");
        let done = |mark: &Value| mark["state"] == "done";
        let masters = view["progress"].as_array().into_iter().flatten().skip(1);
        let whole = masters.filter(|p| p["marks"].as_array().is_some_and(|marks| marks.iter().all(done)));
        ensure!(whole.count() == judge::MASTERS.len(), "{:#}", view["progress"]);
        // Without the helper nobody knows who got an address; the machines tell the rest, and the API who they are.
        let view: Value = serde_json::from_str(&run(&mut admin.by_ssh("status"))?)?;
        let states: Vec<_> =
            view["progress"][0]["marks"].as_array().into_iter().flatten().map(|m| &m["state"]).collect();
        ensure!(states == ["unknown", "done", "done", "done", "unknown"], "{view:#}");
        Ok(())
    });
    suite.check("preflight_knows_the_helper_that_runs_here", || {
        let admin = Admin::of(lab)?;
        let helper = seedling_lab::HELPER.to_string();
        let words = ["-o", "json", "--helper-here", "--helper", &helper, "--dhcp-interface", BRIDGE];
        let findings = findings(&mut admin.seedling("preflight", &words), 0)?;
        let held =
            findings.iter().filter(|f| f["name"] == "ports-free" && f["says"] == "seedling holds it").count();
        let found = |name: &str| findings.iter().any(|f| f["name"] == name && f["result"] == "ok");
        let all = ["foreign-dhcp", "release-pull", "clock"].into_iter().all(found);
        ensure!(held == 7 && all, "{findings:#?}");
        Ok(())
    });
}

/// What a command with `-o json` found.
fn findings(command: &mut Command, code: i32) -> Result<Vec<Value>> {
    let output = output(command)?;
    let (said, report) = (text(&output.stderr), text(&output.stdout));
    ensure!(output.status.code() == Some(code), "{command:?} ended with {}\n{said}{report}", output.status);
    let report: Value = serde_json::from_str(&report).context(said)?;
    report["findings"].as_array().cloned().context("no findings")
}

struct Admin {
    lab: seedling_lab::Lab,
    key: PathBuf,
    /// With a copy of the asset directory's access files, and the machine's resolv.conf.
    home: TempDir,
}

impl Admin {
    fn of(lab: &Lab) -> Result<Self> {
        let (home, lab) = (tempfile::tempdir()?, seedling_lab::Labs::from_env().open(&lab.name)?);
        std::fs::create_dir_all(home.path().join("assets/auth"))?;
        let kubeconfig = "auth/kubeconfig";
        std::fs::copy(lab.record.spec.assets.join(kubeconfig), home.path().join("assets").join(kubeconfig))?;
        std::fs::write(home.path().join("resolv.conf"), format!("nameserver {}\n", seedling_lab::HELPER))?;
        Ok(Self { key: seedling_lab::ssh_key(&lab.dir), lab, home })
    }

    fn assets(&self) -> PathBuf {
        self.home.path().join("assets")
    }

    fn address(&self, machine: &str) -> Result<String> {
        let host = self.lab.record.spec.inventory.by_name(machine).context("no such machine")?;
        Ok(host.address.to_string())
    }

    /// A command with `-o json` that enters the machines.
    fn by_ssh(&self, command: &str) -> Command {
        let options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"];
        let mut by_ssh = self.seedling(command, &["-o", "json"]);
        by_ssh.args(options.iter().flat_map(|option| ["--ssh-option", option]));
        by_ssh.arg("--kubeconfig").arg(self.assets().join("auth/kubeconfig")).arg("--ssh-key").arg(&self.key);
        by_ssh
    }

    /// The program in the lab's network.
    fn seedling(&self, command: &str, arguments: &[&str]) -> Command {
        let network = namespace_path(&Network::of_lab(self.lab.name()).namespace());
        let script = "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";
        let mut enter = Command::new("nsenter");
        enter
            .arg(format!("--net={}", network.display()))
            .args(["unshare", "--mount", "sh", "-c", script, "sh"]);
        enter
            .arg(self.home.path().join("resolv.conf"))
            .arg(seedling().get_program())
            .arg(command)
            .args(arguments);
        enter
    }
}
