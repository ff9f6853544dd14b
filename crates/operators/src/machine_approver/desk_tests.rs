//! A flood of requests beside an honest one.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::super::tests::{Case, admission, first, request, serving};
use super::*;
use seedling_types::ClusterDomain;

fn named(name: &str, case: &Case, version: u64) -> CertificateSigningRequest {
    let mut csr = request(case);
    csr.metadata.name = Some(name.into());
    csr.metadata.resource_version = Some(version.to_string());
    csr
}

/// Who floods, in a pod with a node's credentials: garbage, and requests for another machine.
fn garbage(name: &str) -> CertificateSigningRequest {
    let case = Case {
        username: "system:node:worker-0",
        raw: Some("garbage".into()),
        ..serving("system:node:master-0")
    };
    named(name, &case, 1)
}

struct Flood {
    inventory: Inventory,
    domain: ClusterDomain,
    nodes: BTreeSet<String>,
    admission: Admission,
    requests: BTreeMap<String, Arc<CertificateSigningRequest>>,
    desk: Desk,
}

impl Flood {
    fn of(requests: impl Iterator<Item = (String, CertificateSigningRequest)>) -> Self {
        Self {
            inventory: Inventory::parse(super::super::tests::HOSTS).unwrap(),
            domain: ClusterDomain("ocp4.example.com".into()),
            nodes: BTreeSet::new(),
            admission: admission(),
            requests: requests.map(|(name, csr)| (name, Arc::new(csr))).collect(),
            desk: Desk::default(),
        }
    }

    /// What is written comes back as another version.
    fn round(&mut self, now: Instant) -> Round {
        let known = Known {
            inventory: &self.inventory,
            domain: &self.domain,
            nodes: &self.nodes,
            admission: &self.admission,
        };
        let round = self.desk.round(&self.requests, &known, now);
        for (csr, why) in &round.refuse {
            let live = Arc::make_mut(self.requests.get_mut(&csr.name_any()).unwrap());
            live.metadata.annotations = Some([(REFUSED.to_string(), why.clone())].into());
            live.metadata.resource_version = Some("2".into());
        }
        for (csr, _) in &round.approve {
            self.requests.remove(&csr.name_any());
        }
        round
    }
}

#[test]
fn an_honest_request_is_answered_first_and_a_flood_is_told_little() {
    let mut flood = Flood::of((0..3000).map(|i| (format!("aaa-{i:05}"), garbage(&format!("aaa-{i:05}")))));
    let begun = Instant::now();
    let round = flood.round(begun);
    assert!(round.approve.is_empty() && round.refuse.len() == REFUSED_IN_A_ROUND);
    assert_eq!(round.silent, Some(2990), "said once");
    flood.requests.insert("zzz".into(), Arc::new(named("zzz", &first("system:node:master-0"), 3001)));
    let looked = Instant::now();
    let round = flood.round(begun + Duration::from_secs(1));
    assert_eq!(round.approve.len(), 1, "the honest one does not wait for three thousand others");
    assert!(round.refuse.is_empty() && round.silent.is_none(), "the flood was told enough for now");
    assert!(looked.elapsed() < Duration::from_secs(1), "what was looked at is not looked at again");
    // Ten minutes of it, ten looks a second.
    let told: usize =
        (0..6000).map(|i| flood.round(begun + Duration::from_millis(1000 + 100 * i)).refuse.len()).sum();
    assert!((15..=25).contains(&told), "{told} reasons, Events and lines in ten minutes");
}

#[test]
fn who_asks_for_himself_again_and_again_takes_turns_with_others() {
    let mine = serving("system:node:master-0");
    let mut flood =
        Flood::of((0..500).map(|i| (format!("aaa-{i:04}"), named(&format!("aaa-{i:04}"), &mine, 1))));
    flood.requests.insert("zzz".into(), Arc::new(named("zzz", &first("system:node:worker-0"), 1)));
    let round = flood.round(Instant::now());
    let names: Vec<_> = round.approve.iter().map(|(csr, _)| csr.name_any()).collect();
    assert_eq!(names, ["aaa-0000", "zzz", "aaa-0001", "aaa-0002", "aaa-0003"]);
}

#[test]
fn what_was_refused_is_judged_again_when_more_is_known() {
    let case = first("system:node:master-2");
    let mut flood = Flood::of([("csr".to_string(), named("csr", &case, 1))].into_iter());
    let now = Instant::now();
    assert_eq!(flood.round(now).refuse.len(), 1, "it was given no token");
    let round = flood.round(now);
    assert!(round.approve.is_empty() && round.refuse.is_empty());
    flood.admission.nodes.insert("master-2".into(), flood.admission.nodes["master-0"].clone());
    assert_eq!(flood.round(now).approve.len(), 1);
}

#[test]
fn a_reason_that_could_not_be_written_is_written_later() {
    let mut flood = Flood::of([("csr".to_string(), garbage("csr"))].into_iter());
    let now = Instant::now();
    let known = Known {
        inventory: &flood.inventory,
        domain: &flood.domain,
        nodes: &flood.nodes,
        admission: &flood.admission,
    };
    assert_eq!(flood.desk.round(&flood.requests, &known, now).refuse.len(), 1);
    assert!(flood.desk.round(&flood.requests, &known, now).refuse.is_empty());
    flood.desk.failed("csr");
    assert_eq!(flood.desk.round(&flood.requests, &known, now).refuse.len(), 1);
}

#[test]
fn of_a_large_request_little_is_kept_and_it_is_refused() {
    let mut honest = named("csr", &first("system:node:master-0"), 1);
    let before = honest.clone();
    cut_short(&mut honest);
    assert_eq!(honest, before);
    type Enlarge = fn(&mut CertificateSigningRequest);
    let large: [(&str, Enlarge); 3] = [
        ("request", |csr| csr.spec.request.0 = vec![65; 1_000_000]),
        ("annotations", |csr| {
            csr.metadata.annotations = Some([("a".to_string(), "A".repeat(200_000))].into())
        }),
        ("username", |csr| csr.spec.username = Some("A".repeat(90_000))),
    ];
    for (what, enlarge) in large {
        let mut large = named("csr", &first("system:node:master-0"), 7);
        enlarge(&mut large);
        cut_short(&mut large);
        assert!(serde_json::to_string(&large).unwrap().len() < LARGEST, "{what}");
        assert_eq!((large.name_any().as_str(), large.resource_version().as_deref()), ("csr", Some("7")));
        let mut flood = Flood::of([("csr".to_string(), large)].into_iter());
        let round = flood.round(Instant::now());
        assert!(round.refuse.len() == 1 && round.refuse[0].1.contains("bytes"), "{what}: {:?}", round.refuse);
    }
}
