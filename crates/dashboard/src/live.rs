//! A lab as it changes: its files are looked at several times a second, the API is asked now and then, and whoever follows is told.

use crate::cluster;
use crate::history::{History, News};
use crate::inputs::{Certificate, Cluster, Inputs};
use crate::read;
use crate::story::{Story, story};
use seedling_lab::{Lab, Labs};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{interval, timeout};

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An API that grows is loaded enough.
const ASK_EVERY: Duration = Duration::from_secs(3);
/// Certificates and power change rarely, and cost a request or a process each.
const ROUNDS_OF_THE_REST: u32 = 5;
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Live {
    labs: Labs,
    name: String,
    history: Arc<Mutex<History>>,
    rest: Arc<Mutex<Arc<Rest>>>,
    told: watch::Sender<u64>,
}

/// What is not in the files that are looked at all the time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rest {
    /// The API answered the last question.
    api: bool,
    /// What it said when it last did.
    cluster: Option<Cluster>,
    certificates: Vec<Certificate>,
    power: BTreeMap<String, String>,
}

impl Live {
    /// Begins to follow; ends with the program.
    pub fn follow(labs: Labs, name: &str, epoch: String) -> Self {
        let history = Arc::new(Mutex::new(History::new(epoch)));
        let live =
            Self { labs, name: name.into(), history, rest: Arc::default(), told: watch::Sender::new(0) };
        let (looks, asks) = (live.clone(), live.clone());
        tokio::spawn(async move { looks.look().await });
        tokio::spawn(async move { asks.ask().await });
        live
    }

    pub(crate) fn after(&self, last: Option<&str>) -> News {
        locked(&self.history).after(last)
    }

    pub(crate) fn story(&self) -> Story {
        locked(&self.history).story().clone()
    }

    /// Marked as changed whenever there is news.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// A lab that was removed meanwhile, and perhaps made again, is the one of that name.
    pub(crate) fn lab(&self) -> Option<Lab> {
        self.labs.open(&self.name).ok()
    }

    async fn look(&self) {
        let (mut every, mut seen) = (interval(LOOK_EVERY), None);
        loop {
            every.tick().await;
            let Some(lab) = self.lab() else { continue };
            let (files, rest) = (read::signature(&lab), locked(&self.rest).clone());
            if seen.as_ref().is_some_and(|(old, known)| *old == files && Arc::ptr_eq(known, &rest)) {
                continue;
            }
            seen = Some((files, rest.clone()));
            let read = tokio::task::spawn_blocking(move || {
                let Rest { api, cluster, certificates, power } = (*rest).clone();
                story(&Inputs { api, cluster, certificates, power, ..read::read(&lab) })
            });
            let Ok(story) = read.await else { continue };
            if locked(&self.history).update(story) {
                self.told.send_modify(|n| *n += 1);
            }
        }
    }

    async fn ask(&self) {
        let (mut every, mut round) = (interval(ASK_EVERY), 0);
        loop {
            every.tick().await;
            let old = locked(&self.rest).clone();
            let new = match self.lab() {
                Some(lab) => gather(&lab, (*old).clone(), round % ROUNDS_OF_THE_REST == 0).await,
                None => Rest::default(),
            };
            if new != *old {
                *locked(&self.rest) = Arc::new(new);
            }
            round += 1;
        }
    }
}

/// Once, for a file.
pub async fn read_once(lab: &Lab) -> Inputs {
    let Rest { api, cluster, certificates, power } = gather(lab, Rest::default(), true).await;
    Inputs { api, cluster, certificates, power, ..read::read(lab) }
}

async fn gather(lab: &Lab, old: Rest, all: bool) -> Rest {
    let kubeconfig = lab.kubeconfig();
    let client = match kubeconfig.exists() {
        true => seedling_cluster::connect(Some(&kubeconfig)).await.ok(),
        false => None,
    };
    let mut rest = Rest { api: false, ..old.clone() };
    if let Some(client) = &client
        && let Ok(Ok(cluster)) = timeout(ANSWER_WITHIN, cluster::ask(client)).await
    {
        let known = old.cluster.map(|cluster| cluster.certificates).filter(|known| !known.is_empty() && !all);
        let certificates = match known {
            Some(known) => known,
            None => timeout(ANSWER_WITHIN, cluster::certificates(client)).await.unwrap_or_default(),
        };
        (rest.api, rest.cluster) = (true, Some(Cluster { certificates, ..cluster }));
    }
    if all {
        let lab_ = lab.clone();
        let certificates = tokio::task::spawn_blocking(move || read::certificates(&lab_));
        rest.certificates = certificates.await.unwrap_or_default();
    }
    rest.power = power(lab).await;
    rest
}

async fn power(lab: &Lab) -> BTreeMap<String, String> {
    let mut power = BTreeMap::new();
    for machine in lab.machines() {
        if let Ok(seen) = machine.inspect().await {
            power.insert(machine.name.clone(), format!("{:?}", seen.power).to_lowercase());
        }
    }
    power
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
