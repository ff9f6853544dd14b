//! ssh into a lab's machine: as `core`, with the lab's key, from inside the lab's network. In: where and what. Out: a command.

use crate::network::{Network, namespace_path};
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::process::Command;

/// Ignition's user on every node.
pub const USER: &str = "core";
/// Nobody is asked anything. Host keys are not compared: the lab's own bridge gives each address to its machine only, and a machine
/// that was installed again has new ones. One that is off is noticed.
const OPTIONS: [&str; 7] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "IdentitiesOnly=yes",
];

/// How a machine is reached.
#[derive(Clone, Debug)]
pub struct Access {
    pub lab: String,
    pub address: IpAddr,
    /// The private key; see `Lab::ssh_key`.
    pub key: PathBuf,
}

impl Access {
    /// A command as `core`, or a login without one.
    pub fn command(&self, words: &[String], tty: bool) -> Command {
        let namespace = namespace_path(&Network::of_lab(&self.lab).namespace());
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", namespace.display()));
        command.args(["ssh", "-F", "none", if tty { "-t" } else { "-T" }, "-i"]).arg(&self.key);
        for option in OPTIONS {
            command.args(["-o", option]);
        }
        command.args(["-l", USER, "--", &self.address.to_string()]);
        command.args(words.iter().map(|word| quoted(word)));
        command
    }

    /// The same as root.
    pub fn as_root(&self, words: &[String], tty: bool) -> Command {
        let sudo = ["sudo", "-n", "--"].map(String::from);
        self.command(&[&sudo, words].concat(), tty)
    }
}

/// For the shell at the other end, which gets all words as one line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_as_they_are() {
        for (word, want) in
            [("crictl", "crictl"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$HOME", "'$HOME'")]
        {
            assert_eq!(quoted(word), want);
        }
    }

    #[test]
    fn root_by_sudo_inside_the_lab() {
        let access = Access {
            lab: "a".into(),
            address: IpAddr::from([10, 0, 0, 1]),
            key: "/labs/a/ssh/id_ed25519".into(),
        };
        let command = access.as_root(&["sh".into(), "-c".into(), "id -u".into()], false);
        let words: Vec<_> =
            command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[0], "--net=/run/netns/seedling-a");
        let end = ["-l", "core", "--", "10.0.0.1", "sudo", "-n", "--", "sh", "-c", "'id -u'"];
        assert_eq!(words[words.len() - end.len()..], end);
    }
}
