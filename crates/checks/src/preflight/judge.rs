//! What the facts amount to. Pure.

use super::facts::{Age, Answers, Disk, Facts, Machine, PortUse, Query, Resolved, Wanted};
use super::{
    ADDRESS_CLASH, BALANCER, CERTIFICATES, CLOCK, CPU, DISK, FOREIGN_DHCP, HOST_NAME, IGNITION, INVENTORY,
    KERNEL, MEMORY, PORTS, PULL,
};
use crate::{Check, Finding, Outcome};

/// etcd's own advice.
const P99_MICROS: u64 = 10_000;
/// Leases and tokens; certificates forgive more.
const CLOCKS_DIFFER: i64 = 5;
/// What a control-plane node of a lab uses, with some room.
const MEMORY_NEEDED: u64 = 2 << 30;
const PROCESSORS_NEEDED: usize = 2;
const HOUR: i64 = 3600;
/// A bring-up that waits for people takes so long.
const INSTALLATION: i64 = 2 * HOUR;

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut all: Vec<_> = facts.names.iter().map(name).collect();
    all.extend(facts.balancer.iter().map(balancer));
    all.extend(facts.ports.iter().map(port));
    all.extend(facts.dhcp.iter().map(|offers| {
        let hand = format!("nmap --script broadcast-dhcp-discover -e {}", offers.interface);
        let finding = match &offers.servers {
            Err(why) => Finding::new(&FOREIGN_DHCP, &offers.interface, Outcome::Unknown, why),
            Ok(servers) => {
                let strangers: Vec<_> = servers.iter().filter(|s| Some(**s) != offers.ours).collect();
                let wrong = strangers.iter().map(|s| format!("{s} offers addresses")).collect();
                let well = if servers.is_empty() {
                    "nobody offers an address"
                } else {
                    "only ours offers addresses"
                };
                Finding::of(&FOREIGN_DHCP, &offers.interface, well, wrong)
            }
        };
        let heard = offers.servers.iter().flatten().map(|server| format!("offer from {server}\n"));
        finding.seen(heard.collect::<String>(), hand)
    }));
    all.extend(facts.inventory.iter().map(|read| {
        let finding = match read {
            Ok(machines) => {
                let says = format!("{machines} machines, each with its own name, MAC and address");
                Finding::new(&INVENTORY, "hosts.yaml", Outcome::Ok, says)
            }
            Err(errors) => {
                let says = format!("{} problems", errors.len());
                Finding::new(&INVENTORY, "hosts.yaml", Outcome::Failed, says)
            }
        };
        let evidence = read.as_ref().err().map(|errors| errors.join("\n")).unwrap_or_default();
        finding.seen(evidence, "cat hosts.yaml")
    }));
    all.extend(facts.neighbours.iter().map(|n| {
        let on = format!("{} {}", n.name, n.address);
        let finding = match &n.seen {
            Err(why) => Finding::new(&ADDRESS_CLASH, &on, Outcome::Unknown, why),
            Ok(None) => Finding::new(&ADDRESS_CLASH, &on, Outcome::Ok, "nobody has it"),
            Ok(Some(mac)) if mac.eq_ignore_ascii_case(&n.mac) => {
                Finding::new(&ADDRESS_CLASH, &on, Outcome::Ok, "its own machine has it")
            }
            Ok(Some(mac)) => {
                let says = format!("{mac} has it, and it is for {}", n.mac);
                Finding::new(&ADDRESS_CLASH, &on, Outcome::Failed, says)
            }
        };
        let seen = n.seen.iter().flatten().map(|mac| format!("{} is at {mac}", n.address));
        finding.seen(seen.collect::<String>(), format!("ping -c1 {0}; ip neigh show {0}", n.address))
    }));
    all.extend(facts.pull.iter().map(|pull| {
        let hand = format!("curl -fsSL {}", pull.from);
        match &pull.pulled {
            Ok((bytes, layers)) => {
                let says = format!("{bytes} bytes have their digest, {layers} layers are there");
                Finding::new(&PULL, short(&pull.image), Outcome::Ok, says).seen(&pull.from, hand)
            }
            Err(why) => Finding::new(&PULL, short(&pull.image), Outcome::Failed, why).seen(why, hand),
        }
    }));
    all.extend(facts.certificates.iter().map(|(dir, ages)| {
        let hand = format!("seedling certs check {dir}");
        match ages {
            Err(why) => Finding::new(&CERTIFICATES, dir, Outcome::Unknown, why).seen(why, hand),
            Ok(ages) => certificates(dir, ages, facts.now).seen(listing(ages, facts.now), hand),
        }
    }));
    all.extend(facts.ignition.iter().map(|spec| {
        let hand = format!("grep -o '\"version\":\"[^\"]*\"' {} | head -1", spec.file);
        let finding = match spec.version.as_deref() {
            Err(why) => Finding::new(&IGNITION, &spec.file, Outcome::Failed, why),
            Ok(version) => match minor(version) {
                Some(minor) if minor <= spec.newest => {
                    Finding::new(&IGNITION, &spec.file, Outcome::Ok, format!("version {version}"))
                }
                _ => {
                    let says = format!("version {version}; the machines understand 3.0 to 3.{}", spec.newest);
                    Finding::new(&IGNITION, &spec.file, Outcome::Failed, says)
                }
            },
        };
        finding.seen(spec.version.clone().unwrap_or_else(|why| why), hand)
    }));
    all.extend(facts.clock.iter().map(|clock| {
        let hand = format!("date -u; curl -sI {}", clock.url);
        let finding = match clock.ahead {
            Err(ref why) => Finding::new(&CLOCK, "", Outcome::Unknown, why),
            Ok(ahead) => {
                let way = if ahead > 0 { "ahead of" } else { "behind" };
                let wrong =
                    (ahead.abs() > CLOCKS_DIFFER).then(|| format!("{} s {way} {}", ahead.abs(), clock.url));
                let well = format!("{} s from {}", ahead.abs(), clock.url);
                Finding::of(&CLOCK, "", well, wrong.into_iter().collect())
            }
        };
        let evidence = finding.says.clone();
        finding.seen(evidence, hand)
    }));
    all.extend(facts.disk.iter().map(disk));
    all.extend(facts.machine.iter().flat_map(machine));
    all
}

/// Its name, and the beginning of its digest.
fn short(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.get(..name.find(':').map_or(name.len(), |colon| colon + 9)).unwrap_or(name)
}

fn name(resolved: &Resolved) -> Finding {
    let Resolved { check, name, query, wanted, server, answer } = resolved;
    let kind = if *query == Query::Pointer { "-x " } else { "" };
    let hand = format!("dig +short @{server} {kind}{name}");
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return Finding::new(check, name, Outcome::Unknown, why).seen(why, hand),
    };
    let said =
        if answer.is_empty() { "does not resolve".to_string() } else { format!("is {}", answer.join(", ")) };
    let is = |address: &std::net::IpAddr| answer.iter().any(|a| *a == address.to_string());
    let wrong = match wanted {
        Wanted::Nothing if answer.is_empty() => None,
        Wanted::Nothing => Some(format!("{said}, and nobody has that name: there is a wildcard record")),
        _ if answer.is_empty() => Some(said.clone()),
        Wanted::OneOf(addresses) if addresses.is_empty() || addresses.iter().any(is) => None,
        Wanted::OneOf(addresses) => {
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            Some(format!("{said}, and should be {}", addresses.join(" or ")))
        }
        Wanted::NotOf(machines) => {
            machines.iter().any(is).then(|| format!("{said}: that is a machine, not the balancer"))
        }
        Wanted::Name(wanted) => {
            let right = answer.iter().any(|a| a.trim_end_matches('.').eq_ignore_ascii_case(wanted));
            (!right).then(|| format!("{said}, and should be {wanted}"))
        }
    };
    Finding::of(check, name, said, wrong.into_iter().collect()).seen(answer.join("\n"), hand)
}

fn balancer(answers: &Answers) -> Finding {
    let hand = format!("curl -vk https://{}/", answers.at);
    let (result, says) = match (&answers.who, &answers.ours) {
        (None, _) => (Outcome::Unknown, "the name leads nowhere: see dns-api".to_string()),
        (Some(Err(why)), _) => (Outcome::Failed, why.clone()),
        (Some(Ok(None)), _) => (Outcome::Ok, "accepts connections; nobody is behind it yet".into()),
        (Some(Ok(Some((subject, issuer)))), Some(false)) => (
            Outcome::Failed,
            format!("another cluster answers: {subject}, signed by a {issuer} that is not this cluster's"),
        ),
        (Some(Ok(Some((subject, issuer)))), _) => {
            (Outcome::Ok, format!("{subject}, signed by {issuer}, answers"))
        }
    };
    Finding::new(&BALANCER, &answers.at, result, says.clone()).seen(says, hand)
}

fn port(port: &PortUse) -> Finding {
    let on = format!("{} {}", port.protocol, port.port);
    let flags = if port.protocol == "UDP" { "-lnup" } else { "-ltnp" };
    let hand = format!("ss {flags} sport = :{}", port.port);
    let finding = match &port.holder {
        None => Finding::new(&PORTS, &on, Outcome::Ok, format!("free for {}", port.what)),
        Some(holder) if port.ours.contains(&holder.as_str()) => {
            Finding::new(&PORTS, &on, Outcome::Ok, format!("{holder} holds it"))
        }
        Some(holder) => Finding::new(
            &PORTS,
            &on,
            Outcome::Failed,
            format!("{holder} holds it, and {} needs it", port.what),
        ),
    };
    finding.seen(port.holder.clone().unwrap_or_default(), hand)
}

/// The first that ends counts: an installation needs them all.
fn certificates(dir: &str, ages: &[Age], now: i64) -> Finding {
    let ended = ages.iter().filter(|a| a.until <= now).count();
    let young = ages.iter().filter(|a| a.from > now).count();
    let first = ages.iter().min_by_key(|a| a.until);
    let mut wrong = vec![];
    if ended > 0 {
        wrong.push(format!("{ended} of {} have expired", ages.len()));
    }
    if young > 0 {
        wrong.push(format!("{young} are not valid yet: this clock, or the one they were made by, is wrong"));
    }
    if let Some(first) = first.filter(|a| a.until > now && a.until - now < INSTALLATION) {
        wrong.push(format!("{} expires in {} min", first.place, (first.until - now) / 60));
    }
    let left = first.map_or(0, |a| (a.until - now) / HOUR);
    Finding::of(
        &CERTIFICATES,
        dir,
        format!("{} certificates; the first expires in {left} h", ages.len()),
        wrong,
    )
}

fn listing(ages: &[Age], now: i64) -> String {
    let mut ages: Vec<_> = ages.iter().collect();
    ages.sort_by_key(|a| a.until);
    let line = |a: &&Age| format!("{:>7.1} h left  {}", (a.until - now) as f64 / HOUR as f64, a.place);
    ages.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("3.")?.split('.').next()?.parse().ok()
}

fn disk(disk: &Disk) -> Finding {
    let on = disk.dir.display().to_string();
    let hand = format!(
        "fio --rw=write --ioengine=sync --fdatasync=1 --directory={on} --size=22m --bs=2300 --name=etcd"
    );
    let mut micros = match &disk.micros {
        Err(why) => return Finding::new(&DISK, &on, Outcome::Unknown, why).seen(why, hand),
        Ok(micros) if micros.is_empty() => {
            return Finding::new(&DISK, &on, Outcome::Unknown, "nothing was written");
        }
        Ok(micros) => micros.clone(),
    };
    micros.sort_unstable();
    let at = |percent: usize| micros[(micros.len() * percent / 100).min(micros.len() - 1)];
    let millis = |micros: u64| format!("{:.1} ms", micros as f64 / 1000.0);
    let (median, p99, worst) = (at(50), at(99), at(100));
    let says = format!("fdatasync: 50% {}, 99% {}, worst {}", millis(median), millis(p99), millis(worst));
    let wrong = if p99 > P99_MICROS { vec![format!("{says}; etcd wants 99% below 10 ms")] } else { vec![] };
    let percents =
        [1, 25, 50, 75, 90, 95, 99, 100].map(|percent| format!("{percent:>3}% {:>7} µs", at(percent)));
    let evidence = format!("{} writes of 2300 bytes, each waited for\n{}", micros.len(), percents.join("\n"));
    Finding::of(&DISK, &on, says, wrong).seen(evidence, hand)
}

fn machine(machine: &Machine) -> Vec<Finding> {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
    let few = |check: &Check, wrong: bool, says: String, hand: &str| {
        let finding = Finding::of(check, "", says.clone(), if wrong { vec![says.clone()] } else { vec![] });
        finding.seen(says, hand)
    };
    let missing: Vec<_> = machine.kernel.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
    let features: Vec<_> = machine.kernel.iter().map(|(name, _)| *name).collect();
    let kernel = match missing.is_empty() {
        true => features.join(", "),
        false => format!("missing: {}", missing.join(", ")),
    };
    let (memory, processors, name) = (machine.memory_bytes, machine.processors, &machine.host_name);
    let nameless = name.is_empty() || name.split('.').next() == Some("localhost");
    vec![
        few(
            &MEMORY,
            memory < MEMORY_NEEDED,
            format!("{}; {} are needed", gib(memory), gib(MEMORY_NEEDED)),
            "free -h",
        ),
        few(
            &CPU,
            processors < PROCESSORS_NEEDED,
            format!("{processors}; {PROCESSORS_NEEDED} are needed"),
            "nproc",
        ),
        few(&KERNEL, !missing.is_empty(), kernel, "cat /proc/filesystems; lsmod; ls /sys/fs/cgroup"),
        few(&HOST_NAME, nameless, format!("{name:?}"), "hostname"),
    ]
}
