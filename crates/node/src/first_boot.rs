//! What a machine's first boot shows of trouble to come: a disk too slow for etcd, a clock far from everybody else's.
//!
//! Said, not enforced: a slow machine may still be the only one there is.

use crate::Result;
use crate::error::cannot;
use seedling_checks::preflight::clock_ahead;
use seedling_checks::preflight::machine::measure_disk;
use seedling_steps::{Journal, write_atomic};
use seedling_types::node_report::{FIRST_BOOT_FILE, FirstBoot};
use seedling_types::paths;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// As often as shows the slow ones.
const WRITES: usize = 40;
/// etcd's own advice is 10 ms for 99 of 100 writes; followers call an election after a second without the leader.
const MEDIAN: Duration = Duration::from_millis(10);
const SLOWEST: Duration = Duration::from_millis(250);
/// Certificates are valid from a day before, so this is for leases, tokens and logs that people compare.
const CLOCKS_DIFFER: i64 = 5;

/// Beside everything else: nothing waits for it.
pub async fn check_disk_and_clock(helper: &str) -> Result<()> {
    let journal = Journal::of(Path::new("/"), "first-boot");
    journal.service(journal.step("disk-and-clock", look(helper))).await
}

async fn look(helper: &str) -> Result<()> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(5)).no_proxy().build()?;
    let asked = SystemTime::now();
    let answer = http.head(helper).send().await.ok();
    let answered = SystemTime::now();
    let date = answer.as_ref().and_then(|a| a.headers().get("date")?.to_str().ok());
    let ahead = date.and_then(|date| clock_ahead(date, asked, answered));
    let times =
        measure_disk(Path::new(paths::ETCD_DATA), WRITES).map_err(cannot("write to", paths::ETCD_DATA))?;
    let seen = judge(times, ahead);
    for finding in &seen.findings {
        println!("This machine may be trouble: {finding}");
    }
    let report = serde_json::to_vec_pretty(&seen)?;
    write_atomic(Path::new(FIRST_BOOT_FILE), report, 0o644).map_err(cannot("write", FIRST_BOOT_FILE))
}

/// `times` as measured, in any order.
fn judge(mut times: Vec<Duration>, clock_ahead_seconds: Option<i64>) -> FirstBoot {
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let slowest = times.last().copied().unwrap_or_default();
    let mut findings = Vec::new();
    if median > MEDIAN || slowest > SLOWEST {
        findings.push(format!(
            "its disk is slow: fdatasync took {} ms in the middle and {} ms at worst; etcd wants less than {} ms: \
             use an SSD of its own, or expect elections under load",
            median.as_millis(),
            slowest.as_millis(),
            MEDIAN.as_millis()
        ));
    }
    if let Some(ahead) = clock_ahead_seconds.filter(|s| s.abs() > CLOCKS_DIFFER) {
        let (by, way) = (ahead.abs(), if ahead > 0 { "ahead of" } else { "behind" });
        findings.push(format!(
            "its clock is {by} s {way} the helper's: set it, and let chrony or timesyncd keep it"
        ));
    }
    FirstBoot {
        fdatasync_median_micros: median.as_micros() as u64,
        fdatasync_slowest_micros: slowest.as_micros() as u64,
        clock_ahead_seconds,
        findings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_machine_is_not_spoken_of() {
        let good = judge(
            vec![Duration::from_micros(800), Duration::from_millis(9), Duration::from_millis(2)],
            Some(-2),
        );
        assert_eq!((good.fdatasync_median_micros, good.fdatasync_slowest_micros), (2000, 9000));
        assert!(good.findings.is_empty());
    }

    #[test]
    fn slow_disks_and_wrong_clocks_are_said_with_what_to_do() {
        let bad = judge(vec![Duration::from_millis(30); 3], Some(3600));
        assert!(
            bad.findings[0]
                .starts_with("its disk is slow: fdatasync took 30 ms in the middle and 30 ms at worst")
        );
        assert!(bad.findings[1].starts_with("its clock is 3600 s ahead of the helper's"));
        assert_eq!(
            judge(vec![Duration::from_secs(1), Duration::ZERO, Duration::ZERO], None).findings.len(),
            1
        );
        assert!(judge(vec![], Some(-60)).findings[0].contains("60 s behind"));
    }
}
