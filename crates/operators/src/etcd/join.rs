//! On a master, before etcd starts: wait to be on the member list, then write the config to start with. And before the API
//! server starts: wait until the member beside it may vote.

use anyhow::{Context as _, Result};
use seedling_cluster::etcd::{Etcd, EtcdTls};
use seedling_components::{Place, etcd, pod::to_yaml};
use seedling_steps::{Condition, Probe, wait_for, write_atomic};
use seedling_types::{paths, ports};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct JoinArgs {
    pub name: String,
    pub address: Ipv4Addr,
    /// Everyone who might know the member list.
    pub peers: Vec<(String, Ipv4Addr)>,
    /// Directory of the revision's files.
    pub resources: PathBuf,
    pub out: PathBuf,
}

const POLL: Duration = Duration::from_millis(200);

pub async fn join(args: &JoinArgs) -> Result<()> {
    let me = (args.name.clone(), args.address);
    let members = match Path::new(paths::ETCD_DATA).join("member").exists() {
        // A member that ran before knows the others from its own data.
        true => vec![me],
        false => wait_for_membership(args).await?,
    };
    let config = etcd::config(&args.name, args.address, &members, false, Place::Master);
    write_atomic(&args.out, to_yaml(&config), 0o600)?;
    tracing::info!("starting with {members:?}");
    Ok(())
}

async fn wait_for_membership(args: &JoinArgs) -> Result<Vec<(String, Ipv4Addr)>> {
    let certs = args.resources.join("secrets/etcd-all-certs");
    let tls = tls(
        &args.resources.join("configmaps/etcd-ca-bundle/ca-bundle.crt"),
        &certs.join(format!("etcd-peer-{}", args.name)),
    )?;
    let mine = super::decide::peer_url(args.address);
    let condition = Condition::new(
        format!("{mine} to be on etcd's member list"),
        Duration::from_secs(1800),
        "kubectl -n openshift-etcd-operator logs deployment/etcd-operator",
    );
    let found = wait_for(&condition, POLL, async || {
        let mut seen = "no member answers".to_string();
        for (_, address) in args.peers.iter().filter(|(_, a)| *a != args.address) {
            let endpoint = format!("https://{address}:{}", ports::ETCD_CLIENT);
            let Ok(mut etcd) = Etcd::connect(&[endpoint], &tls).await else { continue };
            let Ok(members) = etcd.members().await else { continue };
            let addresses: Vec<Ipv4Addr> =
                members.iter().flat_map(|m| &m.peer_urls).filter_map(|u| address_of(u)).collect();
            if addresses.contains(&args.address) {
                return Probe::Met(addresses);
            }
            seen = format!("members {addresses:?}");
        }
        Probe::Unmet(seen)
    });
    let named = |address: Ipv4Addr| {
        let peer = args.peers.iter().find(|(_, a)| *a == address);
        (peer.map_or_else(|| address.to_string(), |(name, _)| name.clone()), address)
    };
    Ok(found.await?.into_iter().map(named).collect())
}

/// Runs before a master's API server.
pub async fn wait_for_voter(resources: &Path) -> Result<()> {
    let tls = tls(
        &resources.join("configmaps/etcd-serving-ca/ca-bundle.crt"),
        &resources.join("secrets/etcd-client/tls"),
    )?;
    let endpoint = [format!("https://localhost:{}", ports::ETCD_CLIENT)];
    let condition = Condition::new(
        "the etcd member of this node to be a voter",
        Duration::from_secs(1800),
        "kubectl -n openshift-etcd get pods -o wide; kubectl get etcd cluster -o yaml",
    );
    wait_for(&condition, POLL, async || {
        let status = match Etcd::connect(&endpoint, &tls).await {
            Ok(mut etcd) => etcd.status().await,
            Err(e) => Err(e),
        };
        match status {
            Ok(status) if status.learner => Probe::Unmet("it is a learner".into()),
            Ok(status) if status.leader == 0 => Probe::Unmet("it knows no leader".into()),
            Ok(_) => Probe::Met(()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    Ok(())
}

/// `pair`: path of certificate and key without their endings.
fn tls(ca: &Path, pair: &Path) -> Result<EtcdTls> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let with = |ending: &str| PathBuf::from(format!("{}.{ending}", pair.display()));
    Ok(EtcdTls { ca: read(ca.into())?, cert: read(with("crt"))?, key: read(with("key"))? })
}

fn address_of(url: &str) -> Option<Ipv4Addr> {
    url.strip_prefix("https://")?.rsplit_once(':')?.0.parse().ok()
}
