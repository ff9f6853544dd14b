//! On every node, from its boot on: nothing, unless its certificate expired while it was off. Then it asks for another, until
//! somebody recovers the cluster.

use super::output_of;
use crate::error::{in_file, read_if_there};
use crate::kubelet_join::{CURRENT, below, keep_pair};
use crate::{Error, Result, conditions};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::config::Kubeconfig;
use seedling_pki::{node_request, not_after};
use seedling_steps::{Condition, Journal, wait_for};
use seedling_types::{paths, ports};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use time::OffsetDateTime;

pub const PATH: &str = "/ended-certificate";

#[derive(Serialize, Deserialize)]
pub struct Question {
    /// The expired one.
    pub certificate: String,
    /// Made with its key.
    pub request: String,
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    pub certificate: String,
}

const ASK_AGAIN: Duration = Duration::from_secs(3);
/// The service is started again; each time its log says what it waits for.
const PATIENCE: Duration = Duration::from_secs(3600);

/// True: there is a new certificate, and the kubelet was started with it.
pub async fn ask(root: &Path) -> Result<bool> {
    let Some(old) = ended(root)? else { return Ok(false) };
    let journal = Journal::of(root, "kubelet-recover");
    journal.service(journal.step("certificate", ask_until_answered(root, &old))).await?;
    output_of("systemctl", &["restart", "kubelet.service"]).await?;
    Ok(true)
}

async fn ask_until_answered(root: &Path, old: &str) -> Result<()> {
    let path = below(root, paths::KUBELET_KUBECONFIG);
    let kubeconfig = Kubeconfig::read_from(&path).map_err(in_file(path.display()))?;
    let lacks = |what: &str| Error::Seen(format!("no {what} in the kubeconfig"));
    let cluster = kubeconfig.clusters.first().and_then(|c| c.cluster.as_ref());
    let cluster = cluster.ok_or_else(|| lacks("cluster"))?;
    let host = cluster.server.as_deref().and_then(|s| s.strip_prefix("https://")?.split(':').next());
    let url = format!("https://{}:{}{PATH}", host.ok_or_else(|| lacks("server"))?, ports::MCS);
    let ca = cluster.certificate_authority_data.as_deref().unwrap_or_default();
    let ca = BASE64_STANDARD.decode(ca).map_err(in_file("the kubeconfig's authority"))?;
    let ca = reqwest::Certificate::from_pem_bundle(&ca)?;
    let http =
        reqwest::Client::builder().tls_certs_only(ca).no_proxy().timeout(Duration::from_secs(10)).build()?;
    // Who asks is in the certificate; what the request says of it is not heeded.
    let question = Question { request: node_request("", key_of(old)?)?.0, certificate: old.into() };
    let condition =
        Condition::within(&conditions::ENDED_REPLACED, PATIENCE, "seedling certs recover, on one master");
    let answered = wait_for(&condition, ASK_AGAIN, async || put(&http, &url, &question).await.into());
    keep(root, &answered.await?.certificate, old)
}

async fn put(http: &reqwest::Client, url: &str, question: &Question) -> Result<Answer> {
    let response = http.post(url).json(question).send().await?;
    match response.status() {
        status if status.is_success() => Ok(response.json().await?),
        status => Err(Error::Seen(format!("{url} answers {status}"))),
    }
}

/// Certificate and key, if there are any and they have expired.
pub fn ended(root: &Path) -> Result<Option<String>> {
    let current = below(root, paths::KUBELET_PKI).join(CURRENT);
    let Some(pair) = read_if_there(&current)? else { return Ok(None) };
    let ends = not_after(&pair).map_err(in_file(current.display()))?;
    Ok((ends <= OffsetDateTime::now_utc()).then_some(pair))
}

/// The kubelet keeps both in one file; it makes keys in the older form.
pub fn key_of(pair: &str) -> Result<&str> {
    let begin = ["-----BEGIN PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----"]
        .iter()
        .find_map(|form| pair.find(form));
    begin.map(|at| &pair[at..]).ok_or_else(|| Error::Seen("the certificate has no key beside it".into()))
}

/// The new certificate, with the key of the old one.
pub fn keep(root: &Path, certificate: &str, old: &str) -> Result<()> {
    let now = OffsetDateTime::now_utc().unix_timestamp();
    keep_pair(root, &format!("recovered-{now}"), certificate, key_of(old)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_pki::{CaSpec, KeyAlgorithm, new_ca};
    use time::Duration as Time;

    /// As a kubelet makes it.
    const OLDER_FORM: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEII3hpayxUhEFAorVOp4OkeViKmhZLIyTX3yDiEPOqvW/oAoGCCqGSM49
AwEHoUQDQgAE+a8F3EaSw7Q7z/OGlPqlf476nwQ0kxFOSMpHjPPeYxZCW/8yyjAa
XfUjbDEQx+tg8ZFsLcNVuUEKKsVg1rgQ/w==
-----END EC PRIVATE KEY-----
";

    #[test]
    fn a_kubelets_own_key_can_ask() {
        let pair = format!("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n{OLDER_FORM}");
        let key = key_of(&pair).unwrap();
        assert_eq!(key, OLDER_FORM);
        assert!(node_request("master-0", key).unwrap().0.contains("CERTIFICATE REQUEST"));
    }

    #[test]
    fn only_what_has_ended_is_replaced_and_the_key_stays() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(ended(root.path()).unwrap(), None, "a node that never had one");
        let pki = below(root.path(), paths::KUBELET_PKI);
        std::fs::create_dir_all(&pki).unwrap();
        let made = |days: i64, ago: i64| {
            let spec = CaSpec { cn: "x", ou: None, validity: Time::days(days) };
            new_ca(&spec, KeyAlgorithm::default(), OffsetDateTime::now_utc() - Time::days(ago)).unwrap()
        };
        let (old, new) = (made(1, 3), made(30, 0));
        let pair = format!("{}{}", old.cert, old.key);
        std::fs::write(pki.join("kubelet-client-current.pem"), &pair).unwrap();
        assert_eq!(ended(root.path()).unwrap().as_deref(), Some(pair.as_str()));
        keep(root.path(), &new.cert, &pair).unwrap();
        let link = std::fs::read_link(pki.join("kubelet-client-current.pem")).unwrap();
        let kept = std::fs::read_to_string(pki.join(link.file_name().unwrap())).unwrap();
        assert!(kept.starts_with(new.cert.trim_end()) && kept.ends_with(&old.key));
        assert!(keep(root.path(), &new.cert, &old.cert).is_err(), "without a key nothing is written");
    }
}
