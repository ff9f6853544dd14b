//! Control-plane programs that are clients of the API: how they reach it, and how they are seen working.

use super::certificates::{kept_pair, kubeconfig, required_configmap};
use super::{Env, Health, HealthCheck};
use crate::Result;
use seedling_api::Lease;
use seedling_pki::trust::{Leaf, SERVER_CA};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A kubeconfig for a control-plane program, through the internal load balancer.
pub(crate) async fn client_kubeconfig(env: &Env, client: &Leaf) -> Result<String> {
    let pair = kept_pair(&env.cache, &client.owned).await?;
    let ca = required_configmap(&env.cache, SERVER_CA.namespace, SERVER_CA.configmap).await?;
    let ca = ca.get("ca-bundle.crt").map(String::as_str).unwrap_or_default();
    Ok(kubeconfig(&env.config.api_internal_url(), ca, client.cn, &pair))
}

/// A leader renews every two seconds.
const RENEWED_WITHIN: Duration = Duration::from_secs(20);

/// When a lease was last seen to be renewed, by our own clock: the times in it are by another machine's.
#[derive(Default)]
struct Renewals(Option<(String, Option<Instant>)>);

impl Renewals {
    /// What was never seen before is taken at its word, if the clocks agree.
    fn is_fresh(&mut self, renewed: &str, wall: OffsetDateTime, now: Instant) -> bool {
        let seen = match &self.0 {
            Some((before, seen)) if before == renewed => *seen,
            Some(_) => Some(now),
            None => {
                let said = OffsetDateTime::parse(renewed, &Rfc3339).ok();
                said.filter(|said| (wall - *said).abs() < RENEWED_WITHIN).map(|_| now)
            }
        };
        self.0 = Some((renewed.into(), seen));
        seen.is_some_and(|seen| now.duration_since(seen) < RENEWED_WITHIN)
    }
}

/// Seen working: a master holds the lease and renewed it within its duration.
pub(crate) fn leader_is_a_master(lease: &'static str) -> HealthCheck {
    let seen = Arc::new(Mutex::new(Renewals::default()));
    Box::new(move |env, _| Box::pin(look(env, lease, seen.clone())))
}

async fn look(env: &Env, lease: &str, seen: Arc<Mutex<Renewals>>) -> Health {
    let found = seedling_cluster::get::<Lease>(&env.client, Some("kube-system"), lease).await;
    let unseen = |message: String| Health { working: false, message, trouble: None };
    let lease = match found {
        Ok(Some(lease)) => lease,
        Ok(None) => return unseen("no leader yet".into()),
        Err(e) => return unseen(e.to_string()),
    };
    let spec = lease.spec.unwrap_or_default();
    let holder = spec.holder_identity.unwrap_or_default();
    let host = holder.split('_').next().unwrap_or_default();
    let renewed = spec.renew_time.map(|time| time.0.to_string()).unwrap_or_default();
    let (wall, now) = (OffsetDateTime::now_utc(), Instant::now());
    let fresh = seen.lock().unwrap_or_else(|e| e.into_inner()).is_fresh(&renewed, wall, now);
    match env.inventory.masters().iter().any(|m| m.name == host) {
        true if fresh => Health { working: true, message: format!("{host} leads"), trouble: None },
        true => unseen(format!("{host} held the lease, but does not renew it")),
        false => unseen(format!("the lease is held by {holder:?}, which is no master")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::days(20_000));

    /// The leader's clock is off by so many minutes; it renews every two seconds, and then dies.
    #[test]
    fn a_leader_is_seen_working_whatever_its_clock_says() {
        for (minutes, at_once) in [(0, true), (60, false), (-60, false)] {
            let (mut seen, begun) = (Renewals::default(), Instant::now());
            let mut look = |second: u64, renewed: u64| {
                let said = NOW + time::Duration::minutes(minutes) + Duration::from_secs(renewed);
                let said = said.format(&Rfc3339).unwrap_or_default();
                let age = Duration::from_secs(second);
                seen.is_fresh(&said, NOW + age, begun + age)
            };
            assert_eq!(look(0, 0), at_once, "{minutes} min off");
            assert!(look(2, 2) && look(10, 10), "{minutes} min off: it renews");
            assert!(look(25, 10), "{minutes} min off");
            assert!(!look(31, 10) && !look(3700, 10), "{minutes} min off: it is dead");
            assert!(look(3702, 3702), "{minutes} min off: the next one leads");
        }
    }
}
