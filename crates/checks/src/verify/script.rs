//! What is run on a node, and what it printed. One script a node: entering a machine costs more than the questions.

use super::facts::{Said, Tried};
use super::matrix::Wanted;
use std::collections::BTreeMap;

/// Section, and the command that a person would type. `$api` is the load balancer's name, as the node knows it.
pub(super) const QUESTIONS: &[(&str, &str)] = &[
    ("kubelet", "systemctl is-active kubelet"),
    ("kubelet-healthz", "curl -sS -m 5 http://127.0.0.1:10248/healthz"),
    ("bootkube", "ls /opt/openshift/.bootkube.done"),
    ("manifests", "grep -oHE -m1 'revision\"?: ?.?[0-9]+' /etc/kubernetes/manifests/*"),
    ("containers", "crictl ps"),
    ("api", "curl -sSk -m 5 https://localhost:6443/readyz"),
    ("mcs", "curl -sSk -m 5 -o /dev/null -w '%{http_code}\\n' https://localhost:22623/healthz"),
    ("mcs-balancer", "curl -sSk -m 5 -o /dev/null -w '%{http_code}\\n' https://$api:22623/healthz"),
    (
        "mcs-stranger",
        "curl -sSk -m 5 -o /dev/null -w '%{http_code}\\n' -H 'Accept: application/vnd.coreos.ignition+json;version=3.2.0' \
         https://$api:22623/config/master",
    ),
    ("etcd-health", "in_etcd etcdctl endpoint health"),
    ("etcd-status", "in_etcd etcdctl endpoint status -w json"),
    ("etcd-members", "in_etcd etcdctl member list -w json"),
];

/// Of every node; upstream's path, too.
const KNOW_API: &str =
    "api=$(. /etc/kubernetes/apiserver-url.env 2>/dev/null; echo $KUBERNETES_SERVICE_HOST)\n";
const IN_ETCD: &str = r#"in_etcd() {
  container=$(crictl ps -q --name '^etcd$' | head -1)
  [ -n "$container" ] || { echo 'no etcd runs here'; return 1; }
  crictl exec "$container" "$@"
}
"#;
const IN_ETCD_BY_HAND: &str = "crictl exec $(crictl ps -q --name '^etcd$') ";
const CONNECT: &str = r#"connect() {
  seen=$(timeout 4 bash -c "exec 3<>/dev/tcp/$2/$3" 2>&1); code=$?
  [ -n "$2" ] || code=none
  case $code in none) seen='this machine has no configuration yet';; 0) seen=open;; 124) seen='no answer within 4 s';; *) seen=${seen##*: };; esac
  echo "$mark connection $1 ${2:-unknown} $3 $seen"
}
"#;

/// For a person: the command of a section, on a node that reaches the balancer at `api`.
pub(super) fn command(section: &str, api: &str) -> String {
    let found = QUESTIONS.iter().find(|(name, _)| *name == section);
    let by_hand = |command: &str| command.replace("$api", api).replace("in_etcd ", IN_ETCD_BY_HAND);
    found.map_or_else(String::new, |(_, command)| by_hand(command))
}

/// For a person.
pub(super) fn connect_by_hand(tried: &Tried) -> String {
    format!("timeout 4 bash -c '</dev/tcp/{}/{}' && echo open", tried.address, tried.port)
}

/// `mark` begins the lines that are ours; nothing else prints it.
pub(super) fn script(mark: &str, wanted: &[Wanted]) -> String {
    let mut text = format!(
        "mark={mark}\nexport PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin\n{KNOW_API}{IN_ETCD}{CONNECT}"
    );
    for Wanted { to, address, port } in wanted {
        let address = address.as_deref().unwrap_or("$api");
        text += &format!("connect {to} \"{address}\" {port} &\n");
    }
    text += "wait\n";
    for (section, command) in QUESTIONS {
        text += &format!(
            "echo; echo $mark begin {section}; {command} 2>&1; code=$?; echo; echo $mark end $code\n"
        );
    }
    text
}

pub(super) fn parse(mark: &str, output: &str) -> (BTreeMap<String, Said>, Vec<Tried>) {
    let (mut said, mut tried) = (BTreeMap::new(), Vec::new());
    let mut open: Option<(String, String)> = None;
    for line in output.lines() {
        let ours = line.strip_prefix(mark).map(|rest| rest.trim_start().split(' ').collect::<Vec<_>>());
        match (ours.as_deref(), &mut open) {
            (Some(["begin", section]), _) => open = Some((section.to_string(), String::new())),
            (Some(["end", code]), _) => {
                if let Some((section, text)) = open.take() {
                    let code = code.parse().unwrap_or(-1);
                    said.insert(section, Said { text: text.trim().to_string(), code });
                }
            }
            (Some(["connection", to, address, port, seen @ ..]), _) => tried.push(Tried {
                to: to.to_string(),
                address: address.to_string(),
                port: port.parse().unwrap_or_default(),
                seen: seen.join(" "),
            }),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    tried.sort_by(|a, b| (&a.to, a.port).cmp(&(&b.to, b.port)));
    (said, tried)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn sections_and_connections_are_read() {
        let output = "@x connection m1 10.0.0.2 2379 open\nnoise\n@x connection m1 10.0.0.2 2380 Connection refused\n\n\
                      @x begin kubelet\nactive\n\n@x end 0\n\n@x begin api\ncurl: (7) down\n@x end 7\n@x begin cut";
        let (said, tried) = parse("@x", output);
        assert_eq!(said["kubelet"], Said { text: "active".into(), code: 0 });
        assert_eq!(said["api"], Said { text: "curl: (7) down".into(), code: 7 });
        assert_eq!(said.len(), 2);
        assert!(tried[0].is_open() && tried[1].seen == "Connection refused" && tried.len() == 2);
    }

    /// The real script in a real shell, against a port of this machine that listens and one that does not.
    #[tokio::test]
    async fn the_script_runs() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let free = {
            let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
            other.local_addr().unwrap().port()
        };
        let to = |port| Wanted { to: "m1".into(), address: Some("127.0.0.1".into()), port };
        let text = script("@mark", &[to(port), to(free)]);
        // Only what needs no node: the questions come after `wait`.
        let connections = text.split_inclusive("wait\n").next().unwrap();
        let shell = tokio::process::Command::new("bash").args(["-c", connections]).output().await.unwrap();
        let (_, tried) = parse("@mark", &String::from_utf8_lossy(&shell.stdout));
        let of = |port: u16| tried.iter().find(|t| t.port == port).unwrap().seen.clone();
        assert_eq!((of(port).as_str(), of(free).as_str()), ("open", "Connection refused"));
    }

    proptest::proptest! {
        /// A node may print what it wants: what is read never panics, and only marked lines count.
        #[test]
        fn anything_can_be_read(output in "(@m (begin|end|connection)? ?[a-z0-9 ]{0,12}\\n|[^\\x00]{0,20}\\n){0,12}") {
            let (said, tried) = parse("@m", &output);
            proptest::prop_assert!(said.len() <= output.matches("@m begin").count());
            proptest::prop_assert!(tried.len() <= output.matches("connection").count());
        }
    }
}
