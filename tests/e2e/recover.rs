//! Everything is off until all certificates but etcd's have ended; one command on one master brings the cluster back.

use crate::{finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::judge::MASTERS;
use seedling_e2e::{Lab, run, text, wait};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;

/// As short as can be: kubelets renew theirs when two minutes are left.
const POLICY: &str = "apiVersion: v1\nkind: ConfigMap\n\
    metadata: {namespace: openshift-config, name: certificates}\ndata: {leaf: 6m, renew-before: 1m, kubelet: 4m}\n";

pub(crate) fn recovered(lab: &Lab) -> Result<()> {
    let policy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("short-lives.yaml");
    std::fs::write(&policy, POLICY)?;
    finish(start(lab, &["--manifest", &policy.display().to_string()])?)?;
    run(&mut lab.kubectl(&["create", "configmap", "before", "-n", "default"]))?;
    for master in MASTERS {
        run(&mut lab.lab(&["power", master, "kill"]))?;
    }
    let last = MASTERS
        .iter()
        .map(|master| last_end(&lab.dir().join("nodes").join(master)))
        .collect::<Result<Vec<_>>>()?;
    let last = last.into_iter().max().context("no masters")?;
    println!("the last certificate ends in {:.0} s", (last - OffsetDateTime::now_utc()).as_seconds_f32());
    wait("every certificate to have ended", Duration::from_secs(600), || {
        Ok((OffsetDateTime::now_utc() > last).then_some(()))
    })?;
    for master in MASTERS {
        run(&mut lab.lab(&["power", master, "on"]))?;
    }
    wait("an API server to be ready, with what it has", Duration::from_secs(180), || {
        let answer = lab.shell("master-0", "curl -sk https://localhost:6443/readyz")?;
        ensure!(answer == "ok", "{answer:?}");
        Ok(Some(()))
    })?;
    ensure!(run(&mut lab.kubectl(&["get", "nodes", "--request-timeout=10s"])).is_err(), "nothing had ended");

    let kubeconfig = lab.dir().join("assets/auth/kubeconfig");
    let mut recover = lab.lab(&["exec", "master-0"]);
    recover
        .args(["--", "seedling", "certs", "recover", "--kubeconfig", "/dev/stdin"])
        .stdin(File::open(kubeconfig)?);
    let said = recover.output()?;
    println!("{}{}", text(&said.stderr), text(&said.stdout));
    ensure!(said.status.success(), "certs recover ended with {}", said.status);
    run(&mut lab.kubectl(&["get", "configmap", "before", "-n", "default"]))?;
    // With lives of minutes some operator rolls out new certificates all the time.
    run(&mut lab.kubectl(&["delete", "configmap", "certificates", "-n", "openshift-config"]))?;
    // Every operand is rolled out twice: with what the command made, and with what lasts.
    lab.whole(Duration::from_secs(600))
}

/// Of all certificates with which a master would start again, but for etcd's.
fn last_end(node: &Path) -> Result<OffsetDateTime> {
    let resources = node.join("upper/etc/kubernetes/static-pod-resources");
    let mut ends = vec![];
    let mut pending = vec![resources, node.join("kubelet/pki")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path)?.filter_map(|e| Some(e.ok()?.path())));
        } else if path
            .file_name()
            .is_some_and(|name| name == "tls.crt" || name == "kubelet-client-current.pem")
            && !path.display().to_string().contains("etcd-client")
            && !path.display().to_string().contains("csr-signer")
        {
            // The link is absolute, and leads somewhere else out here.
            let path = std::fs::read_link(&path)
                .map_or(path.clone(), |to| path.with_file_name(to.file_name().unwrap_or_default()));
            ends.push(
                seedling_pki::not_after(&std::fs::read_to_string(&path)?)
                    .with_context(|| path.display().to_string())?,
            );
        }
    }
    ends.into_iter().max().context("no certificates")
}
