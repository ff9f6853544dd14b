//! Three real members of etcd that are full: no write is taken, until there is room again.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod masters;

use masters::Masters;
use seedling_node::etcd::free_space;

/// 16 MiB: full after a few writes.
const SMALL: &[&str] = &["--quota-backend-bytes=16777216"];
const FULL: &str = "database space exceeded";

/// On a busy machine a leader may be late, and a write is tried again; only a full etcd refuses it for good.
fn put(masters: &Masters, n: usize, key: &str, value: &str) -> Result<(), String> {
    let tried = (0..10).map(|_| masters.etcdctl(n, &["put", key, value]).map(drop));
    let mut decided = tried.filter(|put| put.as_ref().err().is_none_or(|e| e.contains(FULL)));
    decided.next().unwrap_or_else(|| panic!("{key} is neither taken nor refused"))
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn a_full_etcd_takes_writes_again() {
    let mut masters = Masters::new(SMALL);
    for n in 0..3 {
        masters.start(n, &[0, 1, 2], "new");
    }
    masters.serves(0).await;
    put(&masters, 1, "key-kept", "1").unwrap();
    // Old versions of one key fill it: what was there before is still there to be read.
    let large = "x".repeat(100_000);
    assert!((0..400).any(|_| put(&masters, 0, "key-large", &large).is_err()));
    assert!(put(&masters, 2, "key-small", "1").is_err(), "nobody takes the smallest write");

    let endpoint = format!("https://{}:2379", masters.address(0));
    let freed = free_space(&endpoint, &masters.tls, &|text| println!("{text}")).await.unwrap();
    assert_eq!(freed.len(), 3);
    for member in &freed {
        assert_eq!(member.after.quota, 16 << 20);
        assert!(member.after.file < 2 << 20 && member.before.file > 14 << 20, "{member:?}");
    }
    for n in 0..3 {
        put(&masters, n, &format!("key-{n}"), "1").unwrap();
    }
    let kept = ["key-0", "key-1", "key-2", "key-kept", "key-large"].map(String::from);
    assert_eq!(masters.keys(1), kept.into());
    assert!(masters.etcd(2).await.unwrap().full_members().await.unwrap().is_empty());

    // With nothing to do it does nothing; with a member down it does not stop another one.
    free_space(&endpoint, &masters.tls, &|_| {}).await.unwrap();
    masters.kill(2);
    masters.serves(0).await;
    let refused = free_space(&endpoint, &masters.tls, &|_| {}).await.unwrap_err();
    assert!(refused.to_string().starts_with("master-2 does not answer"), "{refused}");
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn an_etcd_full_of_what_is_needed_says_so() {
    let mut masters = Masters::new(SMALL);
    masters.start(0, &[0], "new");
    masters.serves(0).await;
    let large = "x".repeat(100_000);
    assert!((0..400).any(|n| put(&masters, 0, &format!("key-{n}"), &large).is_err()));
    let endpoint = format!("https://{}:2379", masters.address(0));
    let refused =
        free_space(&endpoint, &masters.tls, &|text| println!("{text}")).await.unwrap_err().to_string();
    assert!(refused.contains("of the 16 MB that it may have: delete keys"), "{refused}");
    assert!(put(&masters, 0, "key", "1").is_err());

    masters.etcdctl(0, &["del", "--prefix", "key-1"]).unwrap();
    free_space(&endpoint, &masters.tls, &|_| {}).await.unwrap();
    put(&masters, 0, "key", "1").unwrap();
}
