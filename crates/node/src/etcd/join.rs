//! On a master, in etcd's container: wait to be on the member list, wait for the turn to start, write the config, become etcd.
//! And in the API server's: wait until the member beside it may vote, then become the API server.

use super::{last_words, restore};
use crate::error::{cannot, ensure, read, read_if_there, write};
use crate::{Error, Result, conditions};
use seedling_cluster::etcd::{Claim, Etcd, EtcdTls, Member};
use seedling_cluster::recovery::{Answer, was_given_up, was_removed};
use seedling_cluster::wal;
use seedling_components::{Place, etcd, pod::to_yaml};
use seedling_steps::{Condition, Journal, Probe, if_there, move_aside, wait_for};
use seedling_types::{paths, ports};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct JoinArgs {
    pub name: String,
    pub address: IpAddr,
    /// Everyone who might know the member list.
    pub peers: Vec<(String, IpAddr)>,
    /// Directory of the revision's files.
    pub resources: PathBuf,
    pub out: PathBuf,
    /// What to become.
    pub command: Vec<String>,
}

const POLL: Duration = Duration::from_millis(200);
/// Who starts. A member that joins asks every other for its version before it serves itself: two that start together each wait
/// seven seconds for the other's answer, so they take turns.
const TURN: &str = "seedling.dev/etcd-start";
/// The operator looks every few seconds.
const REPLACED_WITHIN: Duration = Duration::from_secs(60);
/// A turn not used within this time is over.
const TURN_SECONDS: i64 = 10;

pub async fn join(args: &JoinArgs) -> Result<()> {
    let config =
        |members: &[(String, IpAddr)]| etcd::config(&args.name, args.address, members, false, Place::Master);
    let data = Data(PathBuf::from(paths::ETCD_DATA));
    let tls = peer_tls(&args.resources, &args.name)?;
    let journal = Journal::of(Path::new("/"), "etcd-join");
    let _ = journal.start();
    carry_out_order(args, &journal).await?;
    leave_old_cluster(args, &data.0, &journal).await?;
    if let Some((id, why)) = unreadable(&data)? {
        journal.step("replacement", be_replaced(args, &data, id, &why)).await?;
        leave_old_cluster(args, &data.0, &journal).await?;
    }
    if !data.is_there() {
        // What a first run left that did not come as far as a log.
        data.remove_unfinished()?;
        let (id, members) = journal.step("membership", wait_for_membership(args, &tls)).await?;
        tracing::info!("joining {members:?} as {id:x}");
        data.belongs_to(id)?;
        let mut first = config(&members);
        // Nobody may take it for a member that stays.
        first["listen-client-urls"] = format!("https://127.0.0.1:{}", ports::ETCD_CLIENT).into();
        write(&args.out, to_yaml(&first))?;
        journal.step("data", receive_data(args)).await?;
    }
    // A member that ran before knows the others from its own data.
    let last = config(&[(args.name.clone(), args.address)]);
    write(&args.out, to_yaml(&last))?;
    journal.finished(&Ok::<_, Error>(()));
    become_program(&args.command)
}

/// Data of a member that was removed, or of a cluster that was given up, is moved aside.
pub async fn leave_old_cluster(args: &JoinArgs, data: &Path, journal: &Journal) -> Result<()> {
    let data = Data(data.into());
    let Some(id) = data.member()? else { return Ok(()) };
    let answers = ask_everybody(args, &peer_tls(&args.resources, &args.name)?).await;
    let given_up = data.cluster().is_some_and(|cluster| was_given_up(cluster, &answers));
    if given_up || was_removed(id, &data.known_voters()?, &answers) {
        let why =
            if given_up { "its cluster was given up and restored without it" } else { "it was removed" };
        tracing::warn!("etcd member {id:x}: {why}; moving its data aside and joining as a new member");
        journal.step("move-aside", async { data.move_aside() }).await?;
    } else if let Some(answer) = answers.iter().find(|a| a.members.iter().any(|m| m.id == id)) {
        data.knows(answer)?;
    }
    Ok(())
}

/// Whose data etcd could not read when it ran last, and its words.
fn unreadable(data: &Data) -> Result<Option<(u64, String)>> {
    let logs = Path::new(etcd::OWN_LOGS).join("etcd");
    let said = last_words::of_last_run(&logs).map_err(cannot("read", &logs))?;
    Ok(data.member()?.zip(said))
}

/// Says so until the others have removed this member. If they do not, etcd is tried again: there may be nobody who could.
async fn be_replaced(args: &JoinArgs, data: &Data, id: u64, why: &str) -> Result<()> {
    tracing::error!("etcd member {id:x} cannot read its data and asks to be replaced: {why}");
    let tls = peer_tls(&args.resources, &args.name)?;
    let condition = Condition::within(
        &conditions::MEMBER_REPLACED,
        REPLACED_WITHIN,
        "kubectl -n openshift-etcd-operator logs deployment/etcd-operator (where the cluster is administered)",
    )
    .with("ID", format_args!("{id:x}"))
    .on(&args.name);
    let removed = wait_for(&condition, Duration::from_secs(1), async || {
        let answers = ask_everybody(args, &tls).await;
        if data.known_voters().is_ok_and(|known| was_removed(id, &known, &answers)) {
            return Probe::Met(());
        }
        for (_, address) in args.peers.iter().filter(|(_, address)| *address != args.address) {
            let endpoint = format!("https://{}", SocketAddr::new(*address, ports::ETCD_CLIENT));
            let Ok(mut etcd) = Etcd::connect(&[endpoint], &tls).await else { continue };
            if etcd.say_lost(id, &args.name).await.is_ok() {
                return Probe::Unmet("the others were told".into());
            }
        }
        Probe::Unmet("no other member takes the message".into())
    });
    if let Err(unmet) = removed.await {
        tracing::warn!("{unmet}; starting etcd again");
    }
    Ok(())
}

/// A restore that was ordered on this master.
async fn carry_out_order(args: &JoinArgs, journal: &Journal) -> Result<()> {
    let member = restore::Member {
        site: restore::Site(paths::ETCD_DATA.into()),
        name: args.name.clone(),
        peer_url: etcd::peer_url(args.address),
        etcd: args.command.first().ok_or_else(|| Error::Seen("nothing to start".into()))?.into(),
        journal: journal.clone(),
    };
    let others = async || restore::who_answers(args.peers.iter().filter(|(_, a)| *a != args.address)).await;
    restore::carry_out(&member, others, |_| Ok(())).await
}

/// etcd's data directory, and whose it is.
pub(super) struct Data(pub(super) PathBuf);

impl Data {
    /// etcd makes the log last and whole.
    fn is_there(&self) -> bool {
        self.0.join("member/wal").exists()
    }
    fn id_file(&self) -> PathBuf {
        self.0.join("member-id")
    }
    fn member(&self) -> Result<Option<u64>> {
        let id = read_if_there(&self.id_file())?.and_then(|id| u64::from_str_radix(&id, 16).ok());
        Ok(id.filter(|_| self.is_there()))
    }
    fn belongs_to(&self, id: u64) -> Result<()> {
        write(&self.id_file(), format!("{id:x}"))
    }
    fn voters_file(&self) -> PathBuf {
        self.0.join("voters")
    }
    /// Who voted when this member was last on a list.
    fn known_voters(&self) -> Result<BTreeSet<u64>> {
        Ok(ids(&read_if_there(&self.voters_file())?.unwrap_or_default()))
    }
    fn given_up_file(&self) -> PathBuf {
        self.0.join("given-up")
    }
    /// Clusters that its own stands for since it was restored.
    pub(super) fn given_up(&self) -> Result<BTreeSet<u64>> {
        Ok(ids(&read_if_there(&self.given_up_file())?.unwrap_or_default()))
    }
    fn knows(&self, answer: &Answer) -> Result<()> {
        let text = |ids: Vec<u64>| ids.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(" ");
        let voters = answer.members.iter().filter(|m| !m.learner).map(|m| m.id).collect();
        write(&self.voters_file(), text(voters))?;
        write(&self.given_up_file(), text(answer.given_up.iter().copied().collect()))
    }
    fn cluster(&self) -> Option<u64> {
        wal::read_owner(&self.0.join("member/wal")).ok().map(|owner| owner.cluster)
    }
    /// Other data is about to take the place of what was there.
    pub(super) fn changes_owner(&self, id: u64) -> Result<()> {
        if_there(std::fs::remove_file(self.voters_file())).map_err(cannot("forget", "the voters"))?;
        self.belongs_to(id)
    }
    /// Killed on the way, it is called again: the id goes last.
    fn move_aside(&self) -> Result<()> {
        move_aside(&self.0.join("member")).map_err(cannot("move aside", "old data"))?;
        self.forget_owner()
    }
    /// Without a log it never agreed to anything, and is not worth the place of data that did.
    fn remove_unfinished(&self) -> Result<()> {
        ensure!(!self.is_there(), "there is a log");
        let removed = if_there(std::fs::remove_dir_all(self.0.join("member")));
        removed.map_err(cannot("remove", "unfinished data"))?;
        self.forget_owner()
    }
    fn forget_owner(&self) -> Result<()> {
        if_there(std::fs::remove_file(self.voters_file())).map_err(cannot("forget", "the voters"))?;
        if_there(std::fs::remove_file(self.id_file()))
            .map(drop)
            .map_err(cannot("forget", "whose data it was"))
    }
}

fn ids(text: &str) -> BTreeSet<u64> {
    text.split_whitespace().filter_map(|id| u64::from_str_radix(id, 16).ok()).collect()
}

/// Every other member's list that a majority agrees on. Who does not answer may be starting, or cut off.
async fn ask_everybody(args: &JoinArgs, tls: &EtcdTls) -> Vec<Answer> {
    let others = args.peers.iter().filter(|(_, address)| *address != args.address);
    let asked = others.map(|(_, address)| {
        let endpoint = [format!("https://{}", SocketAddr::new(*address, ports::ETCD_CLIENT))];
        tokio::time::timeout(Duration::from_secs(2), async move {
            let mut etcd = Etcd::connect(&endpoint, tls).await.ok()?;
            let members = etcd.agreed_members().await.ok()?;
            let (status, given_up) = (etcd.status().await.ok()?, etcd.given_up().await.ok()?);
            Some(Answer { from: status.member, cluster: status.cluster, members, given_up })
        })
    });
    let answers = futures::future::join_all(asked).await;
    answers.into_iter().filter_map(|answer| answer.ok().flatten()).collect()
}

/// A member that joins proposes its name before it has the leader's snapshot, finds the name in that snapshot, and waits seven
/// seconds for an answer that has come already. So its first run ends when it has the data; the second is ready at once.
async fn receive_data(args: &JoinArgs) -> Result<()> {
    let Some((program, flags)) = args.command.split_first() else { return Ok(()) };
    let child = tokio::process::Command::new(program).args(flags).kill_on_drop(true).spawn();
    let mut child = child.map_err(cannot("start", program))?;
    let http =
        reqwest::Client::builder().timeout(Duration::from_secs(1)).tls_certs_only([]).no_proxy().build()?;
    let url = format!("http://127.0.0.1:{}/metrics", ports::ETCD_METRICS);
    let condition = Condition::new(
        &conditions::DATA_ARRIVES,
        Duration::from_secs(600),
        "kubectl -n openshift-etcd-operator logs deployment/etcd-operator (where the cluster is administered)",
    )
    .on(&args.name);
    let received = wait_for(&condition, Duration::from_millis(50), async || {
        let metrics = match http.get(&url).send().await {
            Ok(response) => response.text().await.unwrap_or_default(),
            Err(e) => return Probe::Unmet(e.to_string()),
        };
        match metrics.lines().find_map(|l| l.strip_prefix("etcd_server_proposals_applied_total ")) {
            Some("0") | None => Probe::Unmet("nothing applied yet".into()),
            Some(_) => Probe::Met(()),
        }
    });
    tokio::select! {
        ended = child.wait() => {
            let how = ended.map_err(cannot("wait for", program))?;
            return Err(Error::Seen(format!("{program} ended before it had the leader's data: {how}")));
        }
        received = received => received?,
    }
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM)
            .map_err(cannot("end", program))?;
    }
    if tokio::time::timeout(Duration::from_secs(2), child.wait()).await.is_err() {
        child.kill().await.map_err(cannot("kill", program))?;
    }
    Ok(())
}

/// This process becomes that program, with the same pid and parent: the runtime sees one process.
fn become_program(command: &[String]) -> Result<()> {
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    Err(cannot("start", program)(std::process::Command::new(program).args(args).exec()))
}

pub(super) fn peer_tls(resources: &Path, name: &str) -> Result<EtcdTls> {
    let certs = resources.join("secrets/etcd-all-certs");
    tls(&resources.join("configmaps/etcd-ca-bundle/ca-bundle.crt"), &certs.join(format!("etcd-peer-{name}")))
}

/// The id of this member, and all members.
async fn wait_for_membership(args: &JoinArgs, tls: &EtcdTls) -> Result<(u64, Vec<(String, IpAddr)>)> {
    let peer_http = peer_client(tls)?;
    let mine = etcd::peer_url(args.address);
    let condition = Condition::new(
        &conditions::ON_MEMBER_LIST,
        Duration::from_secs(1800),
        "kubectl -n openshift-etcd-operator logs deployment/etcd-operator (where the cluster is administered)",
    )
    .with("URL", &mine)
    .on(&args.name);
    let found = wait_for(&condition, POLL, async || {
        let mut seen = "no member answers".to_string();
        for (_, address) in args.peers.iter().filter(|(_, a)| *a != args.address) {
            let endpoint = format!("https://{}", SocketAddr::new(*address, ports::ETCD_CLIENT));
            let Ok(mut etcd) = Etcd::connect(&[endpoint], tls).await else { continue };
            let Ok(members) = etcd.agreed_members().await else { continue };
            let addresses: Vec<IpAddr> =
                members.iter().flat_map(|m| &m.peer_urls).filter_map(|u| address_of(u)).collect();
            let Some(me) = members.iter().find(|m| m.peer_urls.contains(&mine)) else {
                seen = format!("members {addresses:?}");
                continue;
            };
            if has_run(me) {
                // What it agreed to went with its data: as the same member it could vote against that.
                seen = match etcd.say_lost(me.id, &args.name).await {
                    Ok(()) => format!("member {:x} has lost its data and is to be replaced", me.id),
                    Err(e) => e.to_string(),
                };
                break;
            }
            match turn(&mut etcd, &peer_http, args.address).await {
                Ok(None) => return Probe::Met((me.id, addresses)),
                Ok(Some(other)) => seen = format!("{other} starts"),
                Err(e) => seen = e.to_string(),
            }
            break;
        }
        Probe::Unmet(seen)
    });
    let named = |address: IpAddr| {
        let peer = args.peers.iter().find(|(_, a)| *a == address);
        (peer.map_or_else(|| address.to_string(), |(name, _)| name.clone()), address)
    };
    let (id, addresses) = found.await?;
    Ok((id, addresses.into_iter().map(named).collect()))
}

/// etcd creates its log before it publishes its name.
fn has_run(member: &Member) -> bool {
    !member.name.is_empty()
}

/// None: it is ours. Otherwise whose it is; a member that answers its peers has used its turn.
async fn turn(members: &mut Etcd, http: &reqwest::Client, me: IpAddr) -> Result<Option<String>> {
    let me = me.to_string();
    let holder = match members.claim(TURN, &me, None, TURN_SECONDS).await? {
        Claim::Mine => return Ok(None),
        Claim::Held(None) => return Ok(Some("somebody".into())),
        Claim::Held(Some(holder)) => holder,
    };
    let url = holder.parse().map(|address| format!("{}/version", etcd::peer_url(address)));
    let serves = match url {
        Ok(url) => holder == me || http.get(url).send().await.is_ok_and(|r| r.status().is_success()),
        Err(_) => false,
    };
    if serves && members.claim(TURN, &me, Some(&holder), TURN_SECONDS).await? == Claim::Mine {
        return Ok(None);
    }
    Ok(Some(holder))
}

/// Members answer their peers only.
fn peer_client(tls: &EtcdTls) -> Result<reqwest::Client> {
    let identity = reqwest::Identity::from_pem(format!("{}{}", tls.cert, tls.key).as_bytes())?;
    let ca = reqwest::Certificate::from_pem_bundle(tls.ca.as_bytes())?;
    let builder = reqwest::Client::builder().identity(identity).tls_certs_only(ca).no_proxy();
    Ok(builder.timeout(Duration::from_millis(500)).build()?)
}

/// Runs before a master's API server.
pub async fn wait_for_voter(resources: &Path, command: &[String]) -> Result<()> {
    let tls = tls(
        &resources.join("configmaps/etcd-serving-ca/ca-bundle.crt"),
        &resources.join("secrets/etcd-client/tls"),
    )?;
    let condition = Condition::new(
        &conditions::IS_VOTER,
        Duration::from_secs(1800),
        "kubectl -n openshift-etcd get pods -o wide (where the cluster is administered)",
    )
    .on(this_node());
    let journal = Journal::of(Path::new("/"), "etcd-wait");
    let votes = wait_for(&condition, POLL, async || {
        let status = async { Etcd::connect_here(&tls).await?.status().await };
        match status.await {
            Ok(status) if status.learner => Probe::Unmet("it is a learner".into()),
            Ok(status) if status.leader == 0 => Probe::Unmet("it knows no leader".into()),
            Ok(_) => Probe::Met(()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    });
    journal.service(journal.step("voter", votes)).await?;
    become_program(command)
}

fn this_node() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `pair`: path of certificate and key without their endings.
fn tls(ca: &Path, pair: &Path) -> Result<EtcdTls> {
    let with = |ending: &str| PathBuf::from(format!("{}.{ending}", pair.display()));
    Ok(EtcdTls { ca: read(ca)?, cert: read(&with("crt"))?, key: read(&with("key"))? })
}

fn address_of(url: &str) -> Option<IpAddr> {
    url.strip_prefix("https://")?.parse::<SocketAddr>().ok().map(|at| at.ip())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn data_counts_from_the_log_on_and_is_kept_when_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let data = Data(dir.path().into());
        data.remove_unfinished().unwrap();
        data.belongs_to(0xabc).unwrap();
        std::fs::create_dir_all(dir.path().join("member/snap")).unwrap();
        assert!(!data.is_there() && data.member().unwrap().is_none());
        std::fs::create_dir_all(dir.path().join("member/wal")).unwrap();
        assert_eq!(data.member().unwrap(), Some(0xabc));
        assert!(data.remove_unfinished().is_err());
        let member =
            |id, learner| Member { id, name: String::new(), peer_urls: vec![], client_urls: vec![], learner };
        let members = vec![member(1, false), member(0xabc, true)];
        data.knows(&Answer { from: 1, cluster: 8, members, given_up: [7].into() }).unwrap();
        assert_eq!(data.known_voters().unwrap(), BTreeSet::from([1]));
        assert_eq!(data.given_up().unwrap(), BTreeSet::from([7]));
        std::fs::write(dir.path().join("member/snap/db"), "acknowledged").unwrap();
        data.move_aside().unwrap();
        assert!(!data.is_there() && data.member().unwrap().is_none());
        assert!(data.known_voters().unwrap().is_empty());
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        let left: Vec<_> = left.into_iter().filter(|path| path.is_dir()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(std::fs::read_to_string(left[0].join("snap/db")).unwrap(), "acknowledged");
    }
}
