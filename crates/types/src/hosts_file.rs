//! A machine written into a file that people edit, or taken out of it: their comments, order and indentation stay. It works on any YAML
//! text with a list `hosts:`, such as hosts.yaml and helper.yaml.

use crate::Host;
use std::net::IpAddr;

/// The text with this machine at the end of the list, in the place of an older one of its name. None: there is no list in block style.
pub fn add(text: &str, host: &Host) -> Option<String> {
    let text = remove(text, &host.name)?;
    let list = List::find(&text)?;
    let (head, tail) = split(&text, list.end);
    Some(format!("{head}{}{}\n{tail}", " ".repeat(list.indent), entry(host)))
}

/// The text without the machine of this name; as it is, if there is none.
pub fn remove(text: &str, name: &str) -> Option<String> {
    let list = List::find(text)?;
    let Some((from, to)) = list.entries.iter().find(|(from, to)| is_of(text, *from, *to, name)) else {
        return Some(text.into());
    };
    let lines = text.split_inclusive('\n').enumerate();
    Some(lines.filter(|(n, _)| !(*from..*to).contains(n)).map(|(_, line)| line).collect())
}

fn entry(host: &Host) -> String {
    let Host { name, role, mac, address, second_address } = host;
    let second =
        second_address.map(|second| format!(", secondAddress: {}", quoted(second))).unwrap_or_default();
    format!(
        "- {{name: {name}, role: {}, mac: '{mac}', address: {}{second}}}",
        role.as_str(),
        quoted(*address)
    )
}

/// Colons in a flow mapping need quotes.
fn quoted(address: IpAddr) -> String {
    if address.is_ipv4() { address.to_string() } else { format!("'{address}'") }
}

fn split(text: &str, line: usize) -> (String, String) {
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let mut head = lines[..line.min(lines.len())].concat();
    if !head.is_empty() && !head.ends_with('\n') {
        head.push('\n');
    }
    (head, lines[line.min(lines.len())..].concat())
}

/// Where the list is, in lines counted from 0.
struct List {
    /// Of the dashes.
    indent: usize,
    /// From a dash to the next, without comments that stand before the next.
    entries: Vec<(usize, usize)>,
    /// Behind the last entry.
    end: usize,
}

impl List {
    fn find(text: &str) -> Option<Self> {
        let lines: Vec<_> = text.lines().collect();
        let start = lines.iter().position(|line| without_comment(line).trim() == "hosts:")?;
        let key = indent(lines[start]);
        let first = (start + 1..lines.len()).find(|n| is_said(lines[*n]))?;
        let dash = indent(lines[first]);
        if !lines[first].trim_start().starts_with('-') || dash < key {
            return None;
        }
        let belongs =
            |line: &str| indent(line) > dash || indent(line) == dash && line.trim_start().starts_with('-');
        let (mut entries, mut end) = (Vec::<(usize, usize)>::new(), first);
        for (n, line) in lines.iter().enumerate().skip(first).filter(|(_, line)| is_said(line)) {
            if !belongs(line) {
                break;
            }
            match (indent(line) == dash, entries.last_mut()) {
                (false, Some(last)) => last.1 = n + 1,
                _ => entries.push((n, n + 1)),
            }
            end = n + 1;
        }
        Some(Self { indent: dash, entries, end })
    }
}

fn is_of(text: &str, from: usize, to: usize, name: &str) -> bool {
    let lines = text.lines().skip(from).take(to - from).map(without_comment);
    let block: String = lines.collect::<Vec<_>>().join("\n");
    let words: Vec<_> =
        block.split(|c: char| c.is_whitespace() || "{},'\"".contains(c)).filter(|w| !w.is_empty()).collect();
    words.windows(2).any(|pair| pair == ["name:", name])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Not empty, and not only a comment.
fn is_said(line: &str) -> bool {
    !without_comment(line).trim().is_empty()
}

fn without_comment(line: &str) -> &str {
    match line.find(" #") {
        _ if line.starts_with('#') => "",
        Some(at) => &line[..at],
        None => line,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{Inventory, Role};

    fn worker(name: &str, last: u8) -> Host {
        let mac = format!("52:54:00:00:00:{last:02x}");
        Host {
            name: name.into(),
            role: Role::Worker,
            mac,
            address: [10, 0, 0, last].into(),
            second_address: None,
        }
    }

    const FLOW: &str = "# ours\nhosts: # all\n- {name: master-0, role: master, mac: '52:54:00:00:00:01', address: 10.0.0.1} # rack 1\n\
                        # the spare\n- {name: worker-0, role: worker, mac: '52:54:00:00:00:02', address: 10.0.0.2}\n\n\
                        loadBalancers: [10.0.0.9] # the helper\n";
    const BLOCK: &str = "loadBalancers:\n- 10.0.0.9\nhosts:\n  - name: master-0\n    role: master\n    mac: 52:54:00:00:00:01\n    address: 10.0.0.1\n\n  \
                         - role: worker\n    name: \"worker-0\"\n    mac: 52:54:00:00:00:02\n    address: 10.0.0.2";

    #[test]
    fn a_machine_comes_and_goes_and_the_rest_stays() {
        for text in [FLOW, BLOCK] {
            let before = Inventory::parse(text).unwrap();
            let more = add(text, &worker("worker-1", 3)).unwrap();
            assert_eq!(
                Inventory::parse(&more).unwrap(),
                before.with(worker("worker-1", 3)).unwrap(),
                "{more}"
            );
            assert_eq!(
                more.lines().filter(|line| line.contains('#')).count(),
                text.lines().filter(|line| line.contains('#')).count()
            );
            assert_eq!(add(&more, &worker("worker-1", 3)).unwrap(), more, "twice is once");
            let less = remove(&more, "worker-0").unwrap();
            assert_eq!(
                Inventory::parse(&less).unwrap(),
                Inventory::parse(&more).unwrap().without("worker-0"),
                "{less}"
            );
            assert_eq!(remove(&less, "worker-0").unwrap(), less);
            assert_eq!(remove(&more, "worker-1").unwrap().trim_end(), text.trim_end());
        }
    }

    #[test]
    fn a_list_inside_another_file() {
        let text = "interface: br0\ninventory:\n  hosts:\n  - name: master-0\n    role: master\n  loadBalancers:\n  - 10.0.0.9\nevents: /e\n";
        let more = add(text, &worker("worker-1", 3)).unwrap();
        assert!(more.contains("role: master\n  - {name: worker-1, role: worker"), "{more}");
        assert!(more.ends_with("  loadBalancers:\n  - 10.0.0.9\nevents: /e\n"), "{more}");
        assert_eq!(remove(&more, "worker-1").unwrap(), text);
    }

    #[test]
    fn a_name_within_another_is_another() {
        let text = add(FLOW, &worker("worker-00", 4)).unwrap();
        assert!(remove(&text, "worker-0").unwrap().contains("worker-00"));
        assert_eq!(add("hosts: []\n", &worker("w", 1)), None);
        assert_eq!(add("", &worker("w", 1)), None);
    }
}
