//! In which order requests are answered, and how many of the refused ones get a reason. Pure.
//!
//! Whoever has the credentials of a node, or of one that joins, can send as many requests as the API server accepts. So a request is looked at once
//! and not each time another comes; approvals come before refusals, and everybody's first one before anybody's fifth; and of
//! what is refused to somebody who asks again and again, only some get a reason, an Event and a line in the log.

use super::judge::{Asked, LONGEST};
use super::{Known, Verdict, judge};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestStatus};
use kube::ResourceExt;
use seedling_api::ObjectMeta;
use seedling_types::csr::REFUSED;
use seedling_types::{Admission, Inventory};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of one requester for one node; then the others are looked at again.
const IN_A_ROUND: usize = 4;
/// Then it is looked whether somebody is to be approved.
const REFUSED_IN_A_ROUND: usize = 10;
/// Refusals that one requester gets reasons for at once, and then one in each interval. A kubelet that is refused asks again every few minutes.
const TOLD: Told = Told { at_once: 10, every: Duration::from_secs(30) };
/// The same of all requesters together.
const TOLD_TO_ALL: Told = Told { at_once: 100, every: Duration::from_secs(1) };
/// How often the log counts those that get no reason.
const SAY: Duration = Duration::from_secs(60);
/// An honest request with all that is around it is much smaller.
const LARGEST: usize = 2 * LONGEST;
/// Of a long request so much is kept that it is still too long.
const STUB: usize = LONGEST + 2;

#[derive(Clone, Copy)]
struct Told {
    at_once: u32,
    every: Duration,
}

/// When the whole burst is available again, by requester; "" stands for all requesters together.
#[derive(Default)]
struct Budget(HashMap<String, Instant>);

impl Budget {
    fn has(&self, who: &str, told: Told, now: Instant) -> bool {
        let whole = self.0.get(who).copied().unwrap_or(now).max(now);
        whole + told.every <= now + told.every * told.at_once
    }

    fn spend(&mut self, who: &str, now: Instant) -> bool {
        self.0.retain(|_, whole| *whole > now);
        let both = [(who, TOLD), ("", TOLD_TO_ALL)];
        let may = both.iter().all(|(who, told)| self.has(who, *told, now));
        for (who, told) in both.iter().filter(|_| may) {
            *self.0.entry(who.to_string()).or_insert(now) += told.every;
        }
        may
    }
}

/// Of a request that stays as it is until it, or what is known, changes.
struct Looked {
    version: String,
    /// The requester, if the refusal still has to be explained.
    untold: Option<String>,
}

/// What is to be written, in this order.
#[derive(Default)]
pub(super) struct Round {
    pub approve: Vec<(Arc<CertificateSigningRequest>, Verdict)>,
    pub refuse: Vec<(Arc<CertificateSigningRequest>, String)>,
    /// How many are refused without a reason; only when it is time to log it.
    pub silent: Option<usize>,
}

/// What was looked at.
#[derive(Default)]
pub(super) struct Desk {
    looked: HashMap<String, Looked>,
    /// On which ground.
    known: Option<(Inventory, BTreeSet<String>, Admission)>,
    told: Budget,
    said: Option<Instant>,
}

impl Desk {
    pub(super) fn round(
        &mut self,
        requests: &BTreeMap<String, Arc<CertificateSigningRequest>>,
        known: &Known,
        now: Instant,
    ) -> Round {
        let ground = (known.inventory, known.nodes, known.admission);
        if self.known.as_ref().map(|(inventory, nodes, admission)| (inventory, nodes, admission))
            != Some(ground)
        {
            self.looked.clear();
            self.known = Some((known.inventory.clone(), known.nodes.clone(), known.admission.clone()));
        }
        self.looked.retain(|name, _| requests.contains_key(name));
        let mut round = Round::default();
        for (name, csr) in requests {
            let version = csr.metadata.resource_version.as_deref().unwrap_or_default();
            if let Some(looked) = self.looked.get(name).filter(|looked| looked.version == version) {
                let may = |who: &String| self.told.has(who, TOLD, now) && self.told.has("", TOLD_TO_ALL, now);
                if !looked.untold.as_ref().is_some_and(may) {
                    continue;
                }
            }
            let untold = match judge(csr, known) {
                Verdict::Ignore => None,
                Verdict::Refuse(why) => self.refuse(&mut round, csr, why, now),
                verdict => {
                    // Looked at again until it is written.
                    round.approve.push((csr.clone(), verdict));
                    continue;
                }
            };
            self.looked.insert(name.clone(), Looked { version: version.into(), untold });
        }
        in_turns(&mut round.approve);
        let silent = self.looked.values().filter(|looked| looked.untold.is_some()).count();
        if silent > 0 && self.said.is_none_or(|said| now.duration_since(said) >= SAY) {
            self.said = Some(now);
            round.silent = Some(silent);
        }
        round
    }

    /// The requester, if the reason has to wait.
    fn refuse(
        &mut self,
        round: &mut Round,
        csr: &Arc<CertificateSigningRequest>,
        why: String,
        now: Instant,
    ) -> Option<String> {
        let why: String = why.chars().take(super::LONGEST_REASON).collect();
        if csr.annotations().get(REFUSED) == Some(&why) {
            return None;
        }
        let who = csr.spec.username.clone().unwrap_or_default();
        if round.refuse.len() >= REFUSED_IN_A_ROUND || !self.told.spend(&who, now) {
            return Some(who);
        }
        round.refuse.push((csr.clone(), why));
        None
    }

    /// It could not be written, and is looked at again.
    pub(super) fn failed(&mut self, name: &str) {
        self.looked.remove(name);
    }
}

/// Who asks, and for which node.
fn whose(csr: &CertificateSigningRequest) -> (String, String) {
    let node = Asked::read(&csr.spec.request.0).map(|asked| asked.common_name).unwrap_or_default();
    (csr.spec.username.clone().unwrap_or_default(), node)
}

/// Everybody's first, then everybody's second, and of nobody more than some.
fn in_turns(approve: &mut Vec<(Arc<CertificateSigningRequest>, Verdict)>) {
    let mut of_whom: HashMap<(String, String), usize> = HashMap::new();
    let turns: Vec<usize> = approve
        .iter()
        .map(|(csr, _)| {
            let before = of_whom.entry(whose(csr)).or_default();
            *before += 1;
            *before
        })
        .collect();
    let mut turned: Vec<_> = std::mem::take(approve).into_iter().zip(turns).collect();
    turned.retain(|(_, turn)| *turn <= IN_A_ROUND);
    turned.sort_by_key(|(_, turn)| *turn);
    approve.extend(turned.into_iter().map(|(request, _)| request));
}

/// What is kept of a request that is larger than any honest one: enough to refuse it.
pub(super) fn cut_short(csr: &mut CertificateSigningRequest) {
    fn is_large(value: &impl serde::Serialize) -> bool {
        serde_json::to_string(value).is_ok_and(|text| text.len() > LARGEST)
    }
    if !is_large(csr) {
        return;
    }
    let short = |text: String| if text.len() > LARGEST { String::new() } else { text };
    let CertificateSigningRequest { metadata: meta, spec, status } = std::mem::take(csr);
    let told = meta.annotations.and_then(|mut all| all.remove_entry(REFUSED)).filter(|told| !is_large(told));
    csr.metadata = ObjectMeta {
        name: meta.name,
        uid: meta.uid,
        resource_version: meta.resource_version,
        annotations: told.map(|told| [told].into()),
        ..ObjectMeta::default()
    };
    csr.spec.signer_name = short(spec.signer_name);
    csr.spec.username = spec.username.map(short);
    csr.spec.request.0 = vec![0; STUB];
    csr.status = status.map(|status| CertificateSigningRequestStatus {
        conditions: status.conditions.filter(|conditions| !is_large(conditions)),
        certificate: None,
    });
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
