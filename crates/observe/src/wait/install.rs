//! The cluster initialized, its operators stable, its console found.

use super::operators::unstable;
use super::{Deadline, Milestone, WaitError, patiently, text};
use crate::Level;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{Timestamp, Zoned};
use kube::Client;
use seedling_api::config::Route;
use seedling_api::{ClusterOperator, ConfigMap, Files};
use seedling_cluster::follow::{Selection, follow};
use seedling_cluster::get;
use seedling_steps::no_progress;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const INITIALIZE_LIMIT: Duration = Duration::from_secs(40 * 60);
const STABLE_LIMIT: Duration = Duration::from_secs(30 * 60);
const CONSOLE_LIMIT: Duration = Duration::from_secs(2 * 60);

pub struct InstallParams<'a> {
    /// Only for the text.
    pub api_url: &'a str,
    /// The asset directory: `auth/kubeconfig`, `auth/kubeadmin-password`.
    pub dir: &'a Path,
    /// How long an operator must not have progressed to count as stable; upstream waits 30 s, its conditions say it at once.
    pub stable_for: Duration,
}

pub async fn install_complete(
    client: &Client,
    params: &InstallParams<'_>,
    on: &mut impl FnMut(Level, String),
) -> Result<(), WaitError> {
    let start = Instant::now();
    initialized(client, params.api_url, on).await?;
    let available = start.elapsed();
    let has_ingress = has_operator(client, "ingress").await?;
    let kubeconfig = params.dir.join("auth/kubeconfig");
    if has_ingress {
        trust_router(client, &kubeconfig).await?;
    }
    stable(client, params.stable_for, on).await?;
    let console = match has_ingress {
        true => console_url(client, on).await,
        false => {
            say(on, Level::Info, "The payload has no ingress: no router CA to trust, no console to look for");
            None
        }
    };
    say(on, Level::Info, "Install complete!");
    say(on, Level::Info, "To access the cluster as the system:admin user when using 'oc', run");
    let absolute = std::path::absolute(&kubeconfig).unwrap_or(kubeconfig);
    say(on, Level::Info, format!("    export KUBECONFIG={}", absolute.display()));
    if let Some(url) = console {
        say(on, Level::Info, format!("Access the OpenShift web-console here: {url}"));
        if let Ok(password) = std::fs::read_to_string(params.dir.join("auth/kubeadmin-password")) {
            let password = password.trim();
            say(
                on,
                Level::Info,
                format!("Login to the console with user: \"kubeadmin\", and password: \"{password}\""),
            );
        }
    }
    say(on, Level::Debug, "Time elapsed per stage:");
    say(on, Level::Debug, format!("Cluster Operators Available: {}", text::duration(available)));
    say(on, Level::Info, format!("Time elapsed: {}", text::duration(start.elapsed())));
    Ok(())
}

fn say(on: &mut impl FnMut(Level, String), level: Level, text: impl Into<String>) {
    on(level, text.into());
}

async fn initialized(
    client: &Client,
    url: &str,
    on: &mut impl FnMut(Level, String),
) -> Result<(), WaitError> {
    let what = format!("for the cluster at {url} to initialize");
    say(on, Level::Info, text::waiting(no_progress(INITIALIZE_LIMIT), &Zoned::now(), &what));
    let reached = patiently(Milestone::Initialized, client, INITIALIZE_LIMIT, |message| {
        say(on, Level::Debug, format!("Still waiting for the cluster to initialize: {message}"));
    });
    let failed = |seen| WaitError::Install(format!("failed to initialize the cluster: {seen}"));
    reached.await.map_err(failed)?;
    say(on, Level::Debug, "Cluster is initialized");
    Ok(())
}

async fn has_operator(client: &Client, name: &str) -> Result<bool, WaitError> {
    let found = get::<ClusterOperator>(client, None, name).await;
    found.map(|o| o.is_some()).map_err(|e| WaitError::Install(e.to_string()))
}

async fn stable(
    client: &Client,
    stable_for: Duration,
    on: &mut impl FnMut(Level, String),
) -> Result<(), WaitError> {
    let what = "to ensure each cluster operator has finished progressing";
    say(on, Level::Info, text::waiting(no_progress(STABLE_LIMIT), &Zoned::now(), what));
    let mut operators = follow::<ClusterOperator>(client, Selection::all());
    let mut deadline = Deadline::new(STABLE_LIMIT);
    let mut told = std::collections::BTreeSet::new();
    loop {
        let seen = operators.now();
        let waiting = unstable(&seen.objects, stable_for, Timestamp::now());
        if seen.synced {
            for name in seen.objects.keys().filter(|n| !waiting.contains(n)) {
                if told.insert(name.clone()) {
                    say(on, Level::Debug, format!("Cluster Operator {name} is stable"));
                }
            }
            if waiting.is_empty() {
                break;
            }
        }
        deadline.saw(waiting.join(", "));
        // Stability for a while comes by time alone.
        let pause = if stable_for.is_zero() { no_progress(STABLE_LIMIT) } else { Duration::from_secs(1) };
        let _ = tokio::time::timeout(pause, operators.next()).await;
        if tokio::time::Instant::now() >= deadline.at() {
            return Err(WaitError::Unstable(deadline.seen));
        }
    }
    say(on, Level::Info, "All cluster operators have completed progressing");
    Ok(())
}

/// The router's CA first among those the admin kubeconfig trusts.
async fn trust_router(client: &Client, kubeconfig: &Path) -> Result<(), WaitError> {
    let failed = |e: String| WaitError::Install(e);
    let found = get::<ConfigMap>(client, Some("openshift-config-managed"), "default-ingress-cert").await;
    let why = match found {
        Ok(Some(map)) => {
            let ca = map.file("ca-bundle.crt").unwrap_or_default();
            let text = std::fs::read_to_string(kubeconfig).map_err(|e| failed(e.to_string()))?;
            let text = with_ca(&text, ca).map_err(failed)?;
            return seedling_steps::write_atomic(kubeconfig, text, 0o640).map_err(|e| failed(e.to_string()));
        }
        Ok(None) => "configmaps \"default-ingress-cert\" not found".to_string(),
        Err(e) => e.to_string(),
    };
    Err(failed(format!(
        "fetching default-ingress-cert configmap from openshift-config-managed namespace: {why}"
    )))
}

fn with_ca(kubeconfig: &str, ca: &str) -> Result<String, String> {
    if !ca.contains("-----BEGIN CERTIFICATE-----") {
        return Err("ca-bundle.crt from default-ingress-cert configmap not valid PEM format".into());
    }
    let mut config: Value = serde_saphyr::from_str(kubeconfig).map_err(|e| e.to_string())?;
    for entry in config["clusters"].as_array_mut().into_iter().flatten() {
        let data = &mut entry["cluster"]["certificate-authority-data"];
        let trusted = BASE64_STANDARD.decode(data.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
        let trusted = String::from_utf8(trusted).map_err(|e| e.to_string())?;
        if !trusted.starts_with(ca) {
            *data = json!(BASE64_STANDARD.encode(format!("{ca}{trusted}")));
        }
    }
    serde_saphyr::to_string(&config).map_err(|e| e.to_string())
}

async fn console_url(client: &Client, on: &mut impl FnMut(Level, String)) -> Option<String> {
    say(on, Level::Info, "Checking to see if there is a route at openshift-console/console...");
    let mut route = follow::<Route>(client, Selection::one(Some("openshift-console"), "console"));
    let deadline = Deadline::new(CONSOLE_LIMIT);
    loop {
        let host = route.one().and_then(|route| {
            let admitted = route.status.as_ref()?.ingress.first()?.conditions.first()?.is_true();
            admitted.then_some(format!("https://{}", route.spec.as_ref()?.host))
        });
        if host.is_some() {
            say(on, Level::Debug, "Route found in openshift-console namespace: console");
            say(on, Level::Debug, "OpenShift console route is admitted");
            return host;
        }
        tokio::select! {
            _ = route.next() => {}
            () = tokio::time::sleep_until(deadline.at()) => {
                say(on, Level::Warning, "Cluster does not have a console available: could not get openshift-console URL");
                return None;
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_routers_ca_comes_first_and_once() {
        let ca = "-----BEGIN CERTIFICATE-----\nrouter\n-----END CERTIFICATE-----\n";
        let data = BASE64_STANDARD.encode("api\n");
        let before = format!("clusters:\n- name: x\n  cluster:\n    certificate-authority-data: {data}\n");
        let once = with_ca(&before, ca).unwrap();
        assert_eq!(with_ca(&once, ca).unwrap(), once);
        let config: Value = serde_saphyr::from_str(&once).unwrap();
        let data = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
        assert_eq!(BASE64_STANDARD.decode(data).unwrap(), format!("{ca}api\n").into_bytes());
        let bad = with_ca(&before, "nonsense").unwrap_err();
        assert_eq!(bad, "ca-bundle.crt from default-ingress-cert configmap not valid PEM format");
    }
}
