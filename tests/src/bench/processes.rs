//! Who uses a machine: every process of a control group, by what it is called, from /proc.

use std::collections::BTreeMap;
use std::fs;

/// Ticks of the kernel's clock for programs.
const TICKS: f64 = 100.0;

/// What a process, or all of one name, has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub cpu_seconds: f64,
    /// Its own memory, without pages of files that it shares.
    pub memory_bytes: u64,
}

/// By pid and start time: a number can go to another process.
pub(super) type Table = BTreeMap<(i32, u64), (String, Used)>;

pub(super) fn table(pids: &[i32]) -> Table {
    let row = |pid: &i32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok();
        let text = |file: &str| Some(String::from_utf8_lossy(&read(file)?).into_owned());
        let (start, cpu_seconds) = times(&text("stat")?)?;
        let used = Used { cpu_seconds, memory_bytes: anonymous(&text("status")?) };
        Some(((*pid, start), (name(&read("cmdline")?), used)))
    };
    pids.iter().filter_map(row).collect()
}

/// What was used from one look to the next, by name; memory is the later look's.
pub(super) fn between(before: &Table, after: &Table) -> BTreeMap<String, Used> {
    let mut by_name: BTreeMap<String, Used> = BTreeMap::new();
    for (key, (name, used)) in after {
        let earlier = before.get(key).map_or(0.0, |(_, used)| used.cpu_seconds);
        let sum = by_name.entry(name.clone()).or_default();
        sum.cpu_seconds += used.cpu_seconds - earlier;
        sum.memory_bytes += used.memory_bytes;
    }
    by_name
}

/// Start time, and user and system time so far.
fn times(stat: &str) -> Option<(u64, f64)> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<_> = after_name.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((number(19)?, (number(11)? + number(12)?) as f64 / TICKS))
}

fn anonymous(status: &str) -> u64 {
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let kilobytes: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// The program; of ours, which of its many parts.
fn name(cmdline: &[u8]) -> String {
    let args: Vec<_> = cmdline.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
    let program = args[0].rsplit('/').next().unwrap_or_default().to_string();
    let words = args.iter().skip(1).take_while(|a| !a.is_empty() && !a.starts_with('-')).take(2);
    match program.as_str() {
        "seedling" => words.fold(program.clone(), |name, word| format!("{name} {word}")),
        "" => "(kernel)".into(),
        _ => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ours_are_told_apart() {
        let cases = [
            ("/usr/bin/seedling\0operator\0etcd\0", "seedling operator etcd"),
            ("/usr/local/bin/kubelet\0--config=/x\0", "kubelet"),
            ("seedling\0helper\0run\0--config\0/x\0", "seedling helper run"),
            ("", "(kernel)"),
        ];
        for (cmdline, want) in cases {
            assert_eq!(name(cmdline.as_bytes()), want);
        }
    }

    #[test]
    fn a_process_counts_from_the_look_before() {
        let stat = |cpu: u32| format!("7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 {cpu} 50 0 0 20 0 1 0 900 0");
        assert_eq!(times(&stat(150)), Some((900, 2.0)));
        let used = |cpu_seconds| Used { cpu_seconds, memory_bytes: 1 };
        let before: Table = [((1, 5), ("a".to_string(), used(2.0)))].into();
        let after: Table = [
            ((1, 5), ("a".to_string(), used(3.0))),
            ((2, 5), ("a".to_string(), used(4.0))),
            ((1, 9), ("b".to_string(), used(1.0))),
        ]
        .into();
        let both = Used { cpu_seconds: 5.0, memory_bytes: 2 };
        assert_eq!(between(&before, &after), [("a".to_string(), both), ("b".to_string(), used(1.0))].into());
    }
}
