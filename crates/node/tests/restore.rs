//! Three real members of etcd, as masters have them: all are lost but one, which is restored; the others come back with what they had.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod masters;

use masters::programs::program;
use masters::{Masters, NAMES};
use seedling_cluster::recovery::Tail;
use seedling_cluster::wal;
use seedling_node::Error;
use seedling_node::etcd::leave_old_cluster;
use seedling_node::etcd::restore::{Member, Order, RestoreStep, Site, backup, carry_out};
use seedling_steps::Journal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What is in the log alone is the hard part: by itself etcd would have it in its database a tenth of a second later.
const ONLY_IN_THE_LOG: &[&str] = &["--backend-batch-interval=10m"];

impl Masters {
    fn member(&self, n: usize) -> Member {
        Member {
            site: Site(self.data(n)),
            name: NAMES[n].into(),
            peer_url: self.peer_url(n),
            etcd: program("etcd"),
            journal: self.journal(),
        }
    }
    fn journal(&self) -> Journal {
        Journal::of(self.dir.path(), "etcd-join")
    }

    fn order(&self, n: usize, id: &str, log: Option<Tail>) -> Order {
        let cluster = wal::read_owner(&self.log(n)).unwrap().cluster;
        let order = Order { id: id.into(), log, given_up: [cluster].into(), runs: [].into() };
        Site(self.data(n)).leave(&order).unwrap();
        order
    }

    /// Killed before every step once, and then again and again in the middle of them.
    async fn restore_with_kills(&self, n: usize) {
        let member = self.member(n);
        let struck = RefCell::new(vec![]);
        let strike = |step: RestoreStep| match struck.borrow().contains(&step) {
            true => Ok(()),
            false => Err(Error::Seen("killed".into())),
        };
        let (mut patience, mut kills) = (Duration::from_millis(20), 0);
        loop {
            let seen = |step: RestoreStep| strike(step).inspect_err(|_| struck.borrow_mut().push(step));
            match tokio::time::timeout(patience, carry_out(&member, async || vec![], seen)).await {
                Ok(Ok(())) => break,
                Ok(Err(e)) => assert_eq!(e.to_string(), "killed"),
                // Dropped: what it had started is killed with it, a moment later.
                Err(_) => (patience, kills) = (patience * 3 / 2, kills + 1),
            }
            while works_in(&member.site.scratch()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let all = [
            RestoreStep::Snapshot,
            RestoreStep::Make,
            RestoreStep::Tell,
            RestoreStep::MoveAside,
            RestoreStep::PutInPlace,
            RestoreStep::Finish,
        ];
        let all = if struck.borrow().contains(&RestoreStep::Snapshot) { &all[..] } else { &all[1..] };
        assert_eq!(&struck.borrow()[..], all);
        println!("{kills} kills in the middle");
    }
}

/// Somebody whose command names the directory.
fn works_in(dir: &Path) -> bool {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|e| fs::read(e.ok()?.path().join("cmdline")).ok());
    let dir = dir.as_os_str().as_encoded_bytes();
    processes.into_iter().any(|command| command.windows(dir.len()).any(|part| part == dir))
}

fn aside(data: &Path) -> usize {
    let names = fs::read_dir(data).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("member.aside-")).count()
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn the_last_master_goes_on_and_the_old_ones_cannot() {
    let mut masters = Masters::new(ONLY_IN_THE_LOG);
    for n in 0..3 {
        masters.start(n, &[0, 1, 2], "new");
    }
    masters.serves(0).await;
    let mut told = BTreeSet::new();
    for n in 0..20 {
        masters.etcdctl(n % 3, &["put", &format!("key-{n:02}"), "1"]).unwrap();
        told.insert(format!("key-{n:02}"));
    }
    let old = masters.cluster(0).await;
    (0..3).for_each(|n| masters.kill(n));
    for n in 0..3 {
        let id = wal::read_owner(&masters.log(n)).unwrap().member;
        fs::write(masters.data(n).join("member-id"), format!("{id:x}")).unwrap();
    }
    let end = |n: usize| wal::read_tail(&masters.log(n)).unwrap();
    let last = (0..3).max_by_key(|n| (end(*n).term, end(*n).last)).unwrap();
    let others: Vec<_> = (0..3).filter(|n| *n != last).collect();
    let tail = end(last);
    println!("{} has {tail}", NAMES[last]);

    // Somebody answers, or the log is another one: nothing is done.
    let order = masters.order(last, "1", Some(tail));
    carry_out(&masters.member(last), async || vec!["master-1".into()], |_| Ok(())).await.unwrap();
    assert!(!Site(masters.data(last)).was_done("1") && Site(masters.data(last)).order().unwrap().is_none());
    let grown = Tail { last: tail.last + 1, ..tail };
    Site(masters.data(last)).leave(&Order { id: "2".into(), log: Some(grown), ..order }).unwrap();
    carry_out(&masters.member(last), async || vec![], |_| Ok(())).await.unwrap();
    assert!(!Site(masters.data(last)).was_done("2"));
    assert_eq!((wal::read_owner(&masters.log(last)).unwrap().cluster, end(last)), (old, tail));

    masters.order(last, "3", Some(tail));
    masters.restore_with_kills(last).await;
    assert!(Site(masters.data(last)).was_done("3"));
    let before = masters.data(last).join("member.before-restore-3/wal");
    assert_eq!(wal::read_tail(&before).unwrap(), tail, "what was there is kept as it was");
    masters.start(last, &[last], "existing");
    masters.serves(last).await;
    let new = masters.cluster(last).await;
    assert_ne!(new, old);
    assert_eq!(masters.keys(last), told, "every write that was acknowledged");
    let mut etcd = masters.etcd(last).await.unwrap();
    assert!(etcd.revision().await.unwrap() > 1_000_000_000);
    assert_eq!(etcd.given_up().await.unwrap(), BTreeSet::from([old]));
    let watched = masters.etcdctl(last, &["watch", "--rev=5", "key-00"]);
    assert!(watched.unwrap_err().contains("compacted"), "who watched the old cluster lists anew");

    // Old ones that nobody asked are a majority of the old cluster, and no part of the new one.
    for n in &others {
        masters.start(*n, &[0, 1, 2], "existing");
    }
    masters.serves(others[0]).await;
    assert_eq!(masters.cluster(others[0]).await, old);
    masters.etcdctl(last, &["put", "key-new", "1"]).unwrap();
    assert!(!masters.keys(others[0]).contains("key-new"));
    assert_eq!(etcd.agreed_members().await.unwrap().len(), 1);
    // Each, when it starts as a master's member does, leaves the old cluster, whatever the other one says.
    for n in &others {
        masters.kill(*n);
        leave_old_cluster(&masters.args(*n), &masters.data(*n), &masters.journal()).await.unwrap();
        assert!(!masters.log(*n).exists() && aside(&masters.data(*n)) == 1);
    }
    // And joins the new one.
    etcd.add_learner(&masters.peer_url(others[0])).await.unwrap();
    masters.start(others[0], &[last, others[0]], "existing");
    for _ in 0..100 {
        let members = etcd.agreed_members().await.unwrap();
        let id = members.iter().find(|m| m.learner).map(|m| m.id);
        match id {
            Some(id) => drop(etcd.promote(id).await),
            None => break,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    masters.serves(others[0]).await;
    assert_eq!(masters.cluster(others[0]).await, new);
    assert!(masters.keys(others[0]).contains("key-new") && masters.keys(others[0]).is_superset(&told));
    leave_old_cluster(&masters.args(last), &masters.data(last), &masters.journal()).await.unwrap();
    assert!(masters.log(last).exists(), "a member of the new one stays");
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn a_snapshot_is_gone_back_to() {
    let mut masters = Masters::new(ONLY_IN_THE_LOG);
    masters.start(0, &[0], "new");
    masters.serves(0).await;
    masters.etcdctl(0, &["put", "key-before", "1"]).unwrap();
    let mut etcd = masters.etcd(0).await.unwrap();
    let mut taken = vec![];
    let full = etcd.snapshot(|_| Err(std::io::ErrorKind::StorageFull.into()), |_| panic!("no room")).await;
    assert!(full.is_err());
    let take = |part: &[u8]| {
        taken.extend_from_slice(part);
        Ok(())
    };
    etcd.snapshot(
        |size| {
            assert!(size > 0);
            Ok(())
        },
        take,
    )
    .await
    .unwrap();
    let old = masters.cluster(0).await;
    masters.etcdctl(0, &["put", "key-after", "1"]).unwrap();
    masters.kill(0);
    let site = Site(masters.data(0));
    fs::create_dir_all(site.scratch()).unwrap();
    fs::write(site.snapshot(), taken).unwrap();
    backup::checked(&site.snapshot()).unwrap();
    masters.order(0, "7", None);
    masters.restore_with_kills(0).await;
    masters.start(0, &[0], "existing");
    masters.serves(0).await;
    assert_eq!(masters.keys(0), BTreeSet::from(["key-before".to_string()]));
    assert_ne!(masters.cluster(0).await, old);
    let mut etcd = masters.etcd(0).await.unwrap();
    assert!(etcd.revision().await.unwrap() > 1_000_000_000);
}
