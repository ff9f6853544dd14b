//! A node's first certificate, before its kubelet starts.
//!
//! A kubelet that asks for itself starts as nobody: whatever it tries is refused and tried again after ever longer pauses, so that
//! it goes on pausing long after the certificate came. Asked for here, in the kubelet's own way and kept in its own files, the
//! certificate is there when the kubelet starts; from then on the kubelet renews it.
//!
//! Killed at any point: the key is kept before the request is made, the request is named after the key, and the kubeconfig, which
//! ends this for good, is written last. Then what the machine asked with is taken from its disk. A node that has lost its
//! certificate needs a new one, from somebody who may give it: `seedling node reissue`. One that was off until it ended asks for
//! another with its key (`recover/node.rs`).

use crate::error::{cannot, in_file, read, read_if_there, write};
use crate::{Error, Result, conditions};
use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
use kube::config::{AuthInfo, Kubeconfig};
use seedling_api::{ByteString, CertificateSigningRequest, Meta, named};
use seedling_cluster::create_if_missing;
use seedling_cluster::follow::{Selection, follow};
use seedling_pki::{KeyAlgorithm, new_key, node_request, not_after};
use seedling_steps::{Condition, Journal, Probe, if_there, wait_for};
use seedling_types::csr::{CLIENT_SIGNER, REFUSED};
use seedling_types::paths;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;

/// While the API does not answer, or refuses because its rules are not there yet.
const RETRY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(600);

/// An expired certificate is no reason not to start: a master's kubelet also runs the API that would give it another.
const WITH_ENDED: Duration = Duration::from_secs(60);

/// What a node has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certificate {
    Valid,
    Ended,
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Start,
    /// The kubelet starts only with one.
    Ask,
    /// And starts with what it has if none comes.
    AskBriefly,
    /// It has to be given something to ask with; until then it starts with what it has.
    StartWithEnded,
    GiveUp,
}

fn plan(own: Certificate, can_ask: bool) -> Plan {
    match (own, can_ask) {
        (Certificate::Valid, _) => Plan::Start,
        (Certificate::Missing, true) => Plan::Ask,
        (Certificate::Missing, false) => Plan::GiveUp,
        (Certificate::Ended, true) => Plan::AskBriefly,
        (Certificate::Ended, false) => Plan::StartWithEnded,
    }
}

/// Everything below `root`, which is `/` on a node.
pub async fn join(root: &Path, node: &str) -> Result<()> {
    let bootstrap = below(root, paths::KUBELET_BOOTSTRAP_KUBECONFIG);
    let journal = Journal::of(root, "kubelet-join");
    let ask = || journal.service(get_certificate(root, node, &journal));
    let ended = "this node's certificate has expired; run `seedling certs recover` on a master to replace it";
    match plan(certificate(root, OffsetDateTime::now_utc()), bootstrap.exists()) {
        Plan::Start => {}
        Plan::Ask => ask().await?,
        Plan::GiveUp => return Err(Error::NoCertificate { node: node.into() }),
        Plan::StartWithEnded => tracing::warn!("{ended}"),
        Plan::AskBriefly => match tokio::time::timeout(WITH_ENDED, ask()).await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                tracing::warn!("this node's certificate has expired, and requesting another failed: {e}")
            }
            Err(_) => tracing::warn!("this node's certificate has expired, and no other was issued in time"),
        },
    }
    if certificate(root, OffsetDateTime::now_utc()) == Certificate::Valid {
        forget(&bootstrap);
    }
    Ok(())
}

pub(crate) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// The kubelet renews it long before it ends.
fn certificate(root: &Path, now: OffsetDateTime) -> Certificate {
    let pki = below(root, paths::KUBELET_PKI);
    let current = std::fs::read_link(pki.join(CURRENT)).ok();
    let pem = current.and_then(|target| std::fs::read_to_string(pki.join(target.file_name()?)).ok());
    let ends = pem.and_then(|pem| not_after(&pem).ok());
    match ends.filter(|_| below(root, paths::KUBELET_KUBECONFIG).exists()) {
        Some(end) if end > now => Certificate::Valid,
        Some(_) => Certificate::Ended,
        None => Certificate::Missing,
    }
}

/// Who reads this disk could request other machines' certificates with it. The node runs, so a failure here is retried at the next start.
fn forget(bootstrap: &Path) {
    if let Err(e) = if_there(std::fs::remove_file(bootstrap)) {
        tracing::warn!("cannot remove {}: {e}", bootstrap.display());
    }
}

async fn get_certificate(root: &Path, node: &str, journal: &Journal) -> Result<()> {
    let kubeconfig = below(root, paths::KUBELET_KUBECONFIG);
    let bootstrap = below(root, paths::KUBELET_BOOTSTRAP_KUBECONFIG);
    let client = seedling_cluster::connect(Some(&bootstrap)).await?;
    let pki = below(root, paths::KUBELET_PKI);
    let key = key(&pki)?;
    let (pem, fingerprint) = node_request(node, &key)?;
    let request = request(&format!("node-csr-{fingerprint}"), &pem);

    let taken = Condition::new(
        &conditions::REQUEST_TAKEN,
        PATIENCE,
        match server(&bootstrap) {
            Some(server) => format!("curl -k '{server}/readyz?verbose'"),
            None => format!("{} has to name the API server", bootstrap.display()),
        },
    )
    .on(node);
    let asked = wait_for(&taken, RETRY, async || create_if_missing(&client, &request).await.into());
    journal.step("request", asked).await?;

    let name = request.name();
    let issued = Condition::new(
        &conditions::CERTIFICATE_ISSUED,
        PATIENCE,
        "seedling csr (where the cluster is administered)",
    )
    .on(node);
    let seen = follow::<CertificateSigningRequest>(&client, Selection::one(None, name));
    let answered = wait_for(&issued, Duration::from_millis(50), async || answer(seen.one().as_deref()));
    let certificate = journal.step("certificate", answered).await??;

    keep_pair(root, &fingerprint[..16], &certificate, &key)?;
    write(&kubeconfig, own_kubeconfig(&read(&bootstrap)?)?)?;
    let _ = std::fs::remove_file(pki.join(KEY));
    Ok(())
}

/// As the kubelet keeps it: a file with both, named after something, and a link to it.
pub(crate) fn keep_pair(root: &Path, after: &str, certificate: &str, key: &str) -> Result<()> {
    let pki = below(root, paths::KUBELET_PKI);
    let dated = format!("kubelet-client-{after}.pem");
    write(&pki.join(&dated), format!("{}\n{key}", certificate.trim_end()))?;
    let fresh = pki.join(".kubelet-client-current.pem");
    let _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(Path::new(paths::KUBELET_PKI).join(&dated), &fresh)
        .and_then(|()| std::fs::rename(&fresh, pki.join(CURRENT)))
        .map_err(cannot("link to", pki.join(&dated)))
}

/// For people: where the request goes.
fn server(kubeconfig: &Path) -> Option<String> {
    Kubeconfig::read_from(kubeconfig).ok()?.clusters.first()?.cluster.as_ref()?.server.clone()
}

/// The name that the kubelet itself uses for it: it would continue with it.
const KEY: &str = "kubelet-client.key.tmp";
/// A link to the newest pair.
pub(crate) const CURRENT: &str = "kubelet-client-current.pem";

fn key(pki: &Path) -> Result<String> {
    let path = pki.join(KEY);
    if let Some(kept) = read_if_there(&path)? {
        return Ok(kept);
    }
    let key = new_key(KeyAlgorithm::EcdsaP256)?;
    write(&path, &key)?;
    Ok(key)
}

fn request(name: &str, pem: &str) -> CertificateSigningRequest {
    let spec = CertificateSigningRequestSpec {
        request: ByteString(pem.as_bytes().to_vec()),
        signer_name: CLIENT_SIGNER.into(),
        usages: Some(["digital signature", "client auth"].map(String::from).into()),
        ..CertificateSigningRequestSpec::default()
    };
    CertificateSigningRequest { metadata: named(name), spec, status: None }
}

/// Its certificate, or why there will be none.
fn answer(request: Option<&CertificateSigningRequest>) -> Probe<Result<String>> {
    let Some(request) = request else { return Probe::Unmet("it is not seen yet".into()) };
    let status = request.status.as_ref();
    if let Some(pem) = status.and_then(|status| status.certificate.as_ref()) {
        return Probe::Met(String::from_utf8(pem.0.clone()).map_err(in_file("the certificate is no text")));
    }
    let mut waits = "it is not approved yet".to_string();
    for condition in status.and_then(|status| status.conditions.as_ref()).into_iter().flatten() {
        let (kind, message) = (&condition.type_, condition.message.as_deref().unwrap_or_default());
        match kind.as_str() {
            "Denied" | "Failed" => {
                let (how, message) = (kind.clone(), message.into());
                return Probe::Met(Err(Error::RequestRefused { how, message }));
            }
            _ => waits = format!("it is {kind}, but not signed yet"),
        }
    }
    if let Some(why) = request.annotation(REFUSED) {
        waits = format!("it is left pending: {why}");
    }
    Probe::Unmet(waits)
}

/// The bootstrap kubeconfig with another user: the certificate, by its path, since the kubelet renews it in place.
fn own_kubeconfig(bootstrap: &str) -> Result<String> {
    let mut config =
        Kubeconfig::from_yaml(bootstrap).map_err(in_file(paths::KUBELET_BOOTSTRAP_KUBECONFIG))?;
    let pair = format!("{}/{CURRENT}", paths::KUBELET_PKI);
    for user in &mut config.auth_infos {
        user.auth_info = Some(AuthInfo {
            client_certificate: Some(pair.clone()),
            client_key: Some(pair.clone()),
            ..AuthInfo::default()
        });
    }
    Ok(serde_json::to_string_pretty(&config)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_pki::{CaSpec, new_ca};
    use serde_json::{Value, json};

    fn csr(status: Value) -> CertificateSigningRequest {
        let mut csr = request("node-csr-a", "PEM");
        csr.status = serde_json::from_value(status).unwrap();
        csr
    }

    #[test]
    fn an_answer_is_a_certificate_a_refusal_or_patience() {
        let signed = csr(json!({"certificate": "UEVN"}));
        assert!(matches!(answer(Some(&signed)), Probe::Met(Ok(pem)) if pem == "PEM"));
        let denied = csr(json!({"conditions": [{"type": "Denied", "status": "True", "message": "no"}]}));
        assert!(
            matches!(answer(Some(&denied)), Probe::Met(Err(e)) if e.to_string() == "the request was Denied: no")
        );
        let approved = csr(json!({"conditions": [{"type": "Approved", "status": "True"}]}));
        assert!(
            matches!(answer(Some(&approved)), Probe::Unmet(why) if why == "it is Approved, but not signed yet")
        );
        let mut pending = csr(json!({}));
        pending.metadata.annotations = Some([(REFUSED.to_string(), "a stranger".to_string())].into());
        assert!(
            matches!(answer(Some(&pending)), Probe::Unmet(why) if why == "it is left pending: a stranger")
        );
        assert!(matches!(answer(None), Probe::Unmet(_)));
    }

    #[test]
    fn the_kubelet_gets_the_cluster_of_the_bootstrap_kubeconfig_and_its_own_user() {
        let given = "{apiVersion: v1, kind: Config, current-context: kubelet, clusters: [{name: local, cluster: {server: 'https://api-int:6443'}}],
            users: [{name: kubelet, user: {token: secret}}], contexts: [{name: kubelet, context: {cluster: local, user: kubelet}}]}";
        let own = own_kubeconfig(given).unwrap();
        assert!(own.contains("https://api-int:6443") && !own.contains("secret"));
        let parsed: Value = serde_json::from_str(&own).unwrap();
        let user = &parsed["users"][0]["user"];
        assert_eq!(user["client-certificate"], "/var/lib/kubelet/pki/kubelet-client-current.pem");
        assert_eq!(user["client-key"], user["client-certificate"]);
    }

    /// A node's disk: which files it has, and when its certificate ends.
    fn disk(kubeconfig: bool, certificate: Option<time::Duration>, bootstrap: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = below(dir.path(), path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        if kubeconfig {
            write(paths::KUBELET_KUBECONFIG, "own");
        }
        if bootstrap {
            write(paths::KUBELET_BOOTSTRAP_KUBECONFIG, "a token");
        }
        if let Some(left) = certificate {
            let made = OffsetDateTime::now_utc() - time::Duration::days(400);
            let spec = CaSpec { cn: "system:node:m", ou: None, validity: time::Duration::days(400) + left };
            let pair = new_ca(&spec, KeyAlgorithm::EcdsaP256, made).unwrap();
            write(&format!("{}/dated.pem", paths::KUBELET_PKI), &format!("{}{}", pair.cert, pair.key));
            let target = Path::new(paths::KUBELET_PKI).join("dated.pem");
            std::os::unix::fs::symlink(target, below(dir.path(), paths::KUBELET_PKI).join(CURRENT)).unwrap();
        }
        dir
    }

    #[tokio::test]
    async fn a_node_with_a_certificate_keeps_nothing_to_ask_with() {
        let day = Some(time::Duration::days(1));
        for bootstrap in [true, false] {
            let disk = disk(true, day, bootstrap);
            join(disk.path(), "m").await.unwrap();
            assert!(!below(disk.path(), paths::KUBELET_BOOTSTRAP_KUBECONFIG).exists());
        }
    }

    #[test]
    fn a_kubelet_starts_whenever_it_can() {
        let (day, ended) = (Some(time::Duration::days(1)), Some(-time::Duration::days(1)));
        for (kubeconfig, certified, can_ask, want) in [
            (true, day, true, Plan::Start),
            (true, day, false, Plan::Start),
            (true, ended, true, Plan::AskBriefly),
            (true, ended, false, Plan::StartWithEnded),
            (true, None, true, Plan::Ask),
            (true, None, false, Plan::GiveUp),
            (false, day, true, Plan::Ask),
            (false, None, true, Plan::Ask),
            (false, None, false, Plan::GiveUp),
        ] {
            let disk = disk(kubeconfig, certified, can_ask);
            let own = certificate(disk.path(), OffsetDateTime::now_utc());
            assert_eq!(plan(own, can_ask), want, "{kubeconfig} {certified:?} {can_ask}");
        }
    }

    #[tokio::test]
    async fn a_node_that_lost_its_certificate_says_what_it_needs() {
        let why = join(disk(true, None, false).path(), "master-1").await.unwrap_err().to_string();
        assert!(why.contains("seedling node reissue master-1 --bootstrap-kubeconfig"), "{why}");
        // One whose certificate has ended runs its static pods: they may be the API itself.
        join(disk(true, Some(-time::Duration::days(1)), false).path(), "master-1").await.unwrap();
    }

    #[tokio::test]
    async fn what_is_needed_to_ask_stays_until_there_is_an_answer() {
        // What is there is no kubeconfig: it comes no further.
        let lost = disk(false, None, true);
        assert!(join(lost.path(), "m").await.is_err());
        assert!(below(lost.path(), paths::KUBELET_BOOTSTRAP_KUBECONFIG).exists());
        let ended = disk(true, Some(-time::Duration::days(1)), true);
        join(ended.path(), "m").await.unwrap();
        assert!(below(ended.path(), paths::KUBELET_BOOTSTRAP_KUBECONFIG).exists());
    }

    #[test]
    fn a_killed_join_goes_on_with_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let first = key(dir.path()).unwrap();
        assert_eq!(key(dir.path()).unwrap(), first);
        assert_eq!(node_request("master-0", &first).unwrap().1, node_request("master-0", &first).unwrap().1);
        std::fs::write(dir.path().join(KEY), [0xff]).unwrap();
        assert!(key(dir.path()).is_err(), "what cannot be read is not replaced");
    }
}
