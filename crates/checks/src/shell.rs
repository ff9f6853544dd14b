//! How a command gets onto a machine: through a lab, or by the system's ssh client.

use seedling_types::Host;
use std::path::PathBuf;
use tokio::process::Command;

/// A way onto machines, as root.
pub trait Shell: Send + Sync {
    /// Runs the script it is given on stdin.
    fn bash(&self, host: &Host) -> Command;
    /// What a person types to run this there.
    fn by_hand(&self, host: &Host, command: &str) -> String;
}

/// `ssh core@ADDRESS`: keys, jump hosts and known hosts are ssh's own business.
#[derive(Clone, Debug)]
pub struct Ssh {
    pub user: String,
    pub key: Option<PathBuf>,
    /// Further options, as ssh's `-o` takes them.
    pub options: Vec<String>,
}

impl Ssh {
    /// Nobody is there to answer questions, and a machine that is off must not hold up the others.
    const ALWAYS: [&str; 2] = ["BatchMode=yes", "ConnectTimeout=5"];

    fn arguments(&self, host: &Host) -> Vec<String> {
        let mut words = vec![];
        if let Some(key) = &self.key {
            words.extend(["-i".to_string(), key.display().to_string()]);
        }
        // The first value of an option counts: a person's own wins.
        let options = self.options.iter().map(String::as_str).chain(Self::ALWAYS);
        words.extend(options.flat_map(|option| ["-o".to_string(), option.to_string()]));
        words.push(format!("{}@{}", self.user, host.address));
        words
    }
}

impl Shell for Ssh {
    fn bash(&self, host: &Host) -> Command {
        let mut command = Command::new("ssh");
        command.args(self.arguments(host)).args(match self.user.as_str() {
            "root" => &["bash", "-s"][..],
            _ => &["sudo", "-n", "bash", "-s"],
        });
        command
    }

    fn by_hand(&self, host: &Host, command: &str) -> String {
        let sudo = if self.user == "root" { "" } else { "sudo " };
        format!("ssh {}@{} {sudo}bash -s <<< {}", self.user, host.address, quoted(command))
    }
}

/// One word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_types::Role;

    #[test]
    fn ssh_asks_nothing_and_becomes_root() {
        let host = Host {
            name: "master-0".into(),
            role: Role::Master,
            mac: String::new(),
            address: [10, 0, 0, 1].into(),
            second_address: None,
        };
        let ssh =
            Ssh { user: "core".into(), key: Some("/k".into()), options: vec!["ConnectTimeout=9".into()] };
        let command = ssh.bash(&host);
        let words: Vec<_> = command.as_std().get_args().map(|w| w.to_string_lossy().into_owned()).collect();
        assert_eq!(
            words.join(" "),
            "-i /k -o ConnectTimeout=9 -o BatchMode=yes -o ConnectTimeout=5 core@10.0.0.1 sudo -n bash -s"
        );
        assert_eq!(ssh.by_hand(&host, "echo 'a'"), r"ssh core@10.0.0.1 sudo bash -s <<< 'echo '\''a'\'''");
    }
}
