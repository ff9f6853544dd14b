//! `seedling verify`, `status` and `preflight --node` on a real cluster: all green, and red when something is switched off.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, output, run, seedling, text, wait};
use serde_json::Value;
use std::time::Duration;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("verify_is_all_green", || {
        wait("a green cluster", Duration::from_secs(60), || {
            let (code, report) = verify(lab, &[])?;
            ensure!(report["ok"] == (code == Some(0)), "exit {code:?} with ok {}", report["ok"]);
            Ok((code == Some(0)).then_some(()))
        })
    });
    suite.check("status_says_that_it_is_installed", || {
        let said = run(seedling().args(["status", "--name", &lab.name]))?;
        for words in ["installed, ", "etcd: 3 members, 3 vote", "operators: 8 of 8 are done"] {
            ensure!(said.contains(words), "{words:?} is not in\n{said}");
        }
        Ok(())
    });
    suite.check("verify_finds_a_stopped_kubelet", || {
        lab.exec("master-2", &["systemctl", "stop", "kubelet"])?;
        let (code, report) = verify(lab, &["--only", "kubelet"])?;
        lab.exec("master-2", &["systemctl", "start", "kubelet"])?;
        let findings = report["findings"].as_array().context("no findings")?;
        let failed: Vec<_> = findings.iter().filter(|f| f["result"] == "failed").map(|f| &f["on"]).collect();
        ensure!(code == Some(1) && failed == ["master-2"], "exit {code:?}, {failed:?}");
        Ok(())
    });
}

fn verify(lab: &Lab, more: &[&str]) -> Result<(Option<i32>, Value)> {
    let output = output(seedling().args(["verify", "-o", "json", "--name", &lab.name]).args(more))?;
    let report = serde_json::from_slice(&output.stdout).with_context(|| text(&output.stderr))?;
    Ok((output.status.code(), report))
}
