//! What a machine's first boot shows of trouble to come: a disk too slow for etcd, a clock far from everybody else's.
//!
//! Said, not enforced: a slow machine may still be the only one there is.

use crate::Result;
use crate::error::cannot;
use seedling_steps::{Journal, write_atomic};
use seedling_types::node_report::{FIRST_BOOT_FILE, FirstBoot};
use seedling_types::paths;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// What etcd's log writes at a time, and as often as shows the slow ones.
const WRITE: [u8; 2300] = [0x5e; 2300];
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
    let times = measure_disk(Path::new(paths::ETCD_DATA)).map_err(cannot("write to", paths::ETCD_DATA))?;
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

/// How long each write to a file in `dir` took to be on the disk.
fn measure_disk(dir: &Path) -> io::Result<Vec<Duration>> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(".first-boot");
    let mut file: File = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let mut write = || {
        let start = Instant::now();
        file.write_all(&WRITE)?;
        file.sync_data()?;
        Ok(start.elapsed())
    };
    let times = (0..WRITES).map(|_| write()).collect();
    std::fs::remove_file(&path)?;
    times
}

/// From the `Date` of an HTTP answer that came between two looks at this machine's clock.
fn clock_ahead(date: &str, asked: SystemTime, answered: SystemTime) -> Option<i64> {
    let theirs = time::OffsetDateTime::parse(date, &time::format_description::well_known::Rfc2822).ok()?;
    let seconds = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|d| d.as_secs() as i64);
    // Any moment in between would do; the nearest is the kindest.
    let (first, last) = (seconds(asked)?, seconds(answered)?);
    let there = theirs.unix_timestamp();
    Some(there.clamp(first, last)).map(|nearest| nearest - there)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
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

    #[test]
    fn the_disk_is_really_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let times = measure_disk(dir.path()).unwrap();
        assert_eq!(times.len(), WRITES);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_clock_is_compared_within_the_time_of_the_question() {
        let at = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let date = "Thu, 01 Jan 1970 00:16:40 GMT";
        assert_eq!(clock_ahead(date, at(999), at(1002)), Some(0));
        assert_eq!(clock_ahead(date, at(1100), at(1101)), Some(100));
        assert_eq!(clock_ahead(date, at(900), at(901)), Some(-99));
        assert_eq!(clock_ahead("soon", at(1), at(2)), None);
    }
}
