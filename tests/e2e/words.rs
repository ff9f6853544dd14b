//! Bad input gets all its errors at once, the documented exit code, and nothing written.

use crate::Suite;
use anyhow::{Result, ensure};
use seedling_e2e::{output, seedling, text};
use std::path::PathBuf;

pub(crate) fn checks(suite: &mut Suite) {
    suite.check("a_bad_install_config_is_refused_whole", bad_install_config);
    suite.check("a_bad_hosts_file_is_refused_whole", bad_hosts);
    suite.check("wrong_usage_exits_2", || {
        let output = output(seedling().arg("no-such-command"))?;
        ensure!(output.status.code() == Some(2), "{:?}", output.status);
        Ok(())
    });
    suite.check("an_unknown_lab_is_named", || {
        let output = output(seedling().args(["lab", "status", "--name", "nobody"]))?;
        ensure!(output.status.code() == Some(1), "{:?}", output.status);
        ensure!(text(&output.stderr).contains("no lab is called \"nobody\""), "{}", text(&output.stderr));
        Ok(())
    });
}

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn dir(name: &str) -> Result<Dir> {
    let path = std::env::temp_dir().join(format!("seedling-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path)?;
    Ok(Dir(path))
}

const CONFIG: &str = "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: ocp4}\n\
    controlPlane: {name: master, replicas: 3}\ncompute: [{name: worker, replicas: 0}]\n\
    networking: {clusterNetworks: [{cidr: 10.128.0.0/14, hostPrefix: 23}], networkType: OVNKubernetes, serviceNetwork: [172.30.0.0/16]}\n\
    platform: {none: {}}\npullSecret: '{\"auths\":{\"fake\":{\"auth\":\"aWQ6cGFzcwo=\"}}}'\n";

fn refused(dir: &Dir, wanted: &[&str]) -> Result<()> {
    let before: Vec<_> =
        std::fs::read_dir(&dir.0)?.map(|e| e.map(|e| e.file_name())).collect::<Result<_, _>>()?;
    let output = output(seedling().args(["create", "ignition-configs", "--dir"]).arg(&dir.0))?;
    let said = text(&output.stderr);
    ensure!(output.status.code() == Some(3), "exit {:?}\n{said}", output.status.code());
    for words in wanted {
        ensure!(said.contains(words), "{words:?} is not in\n{said}");
    }
    let mut after: Vec<_> =
        std::fs::read_dir(&dir.0)?.map(|e| e.map(|e| e.file_name())).collect::<Result<_, _>>()?;
    // As upstream: the log of every run.
    after.retain(|name| name != ".openshift_install.log");
    ensure!(before.len() == after.len(), "something was written: {after:?}");
    Ok(())
}

fn bad_install_config() -> Result<()> {
    let dir = dir("bad-config")?;
    let bad = CONFIG
        .replace("replicas: 3", "replicas: 0")
        .replace("172.30.0.0/16", "172.30.0.1/16")
        .replace("example.com", "_bad");
    std::fs::write(dir.0.join("install-config.yaml"), bad)?;
    refused(
        &dir,
        &[
            "baseDomain",
            "controlPlane.replicas",
            "networking.serviceNetwork[0]",
            "expecting 172.30.0.0/16",
            "install-config.yaml:2:1",
        ],
    )
}

fn bad_hosts() -> Result<()> {
    let dir = dir("bad-hosts")?;
    std::fs::write(dir.0.join("install-config.yaml"), CONFIG)?;
    std::fs::write(
        dir.0.join("hosts.yaml"),
        "hosts:\n- {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:01', address: 192.168.100.10}\n\
         - {name: m_0, role: master, mac: nonsense, address: 192.168.100.10}\n",
    )?;
    refused(&dir, &["hosts[1].name", "hosts[1].mac", "hosts[1].address"])
}
