//! The first install-config of a directory: from flags, or from questions on a terminal.

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use seedling_assets::config::Answers;
use seedling_steps::write_atomic;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct NewArgs {
    /// The cluster's name, for a new install-config
    #[arg(long)]
    name: Option<String>,
    /// The DNS domain of the cluster: its API will be api.NAME.DOMAIN
    #[arg(long, value_name = "DOMAIN")]
    base_domain: Option<String>,
    /// A file with the pull secret
    #[arg(long, value_name = "FILE")]
    pull_secret: Option<PathBuf>,
    /// A file with SSH public keys for logging in on the machines [default when asking: the first of ~/.ssh/id_*.pub]
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// How many control-plane machines [default: 3]
    #[arg(long, value_name = "N")]
    masters: Option<u32>,
    /// How many machines for workloads only [default: 0]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// The machines' IP network [default: 10.0.0.0/16]
    #[arg(long, value_name = "CIDR")]
    machine_network: Option<String>,
}

impl NewArgs {
    fn given(&self) -> bool {
        self.name.is_some() || self.base_domain.is_some() || self.pull_secret.is_some()
    }
}

/// Writes install-config.yaml where there is none yet and someone says what it should be.
pub(super) fn new_install_config(dir: &Path, args: &NewArgs) -> Result<()> {
    let path = dir.join("install-config.yaml");
    if path.exists() || dir.join(".openshift_install_state.json").exists() {
        if args.given() {
            bail!("{} has an install-config already; flags are for a new one", dir.display());
        }
        return Ok(());
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !terminal && !args.given() {
        // The library says what is missing.
        return Ok(());
    }
    let answers = answers(args, terminal)?;
    let faults = answers.faults();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    write_atomic(&path, answers.to_yaml(), 0o600).with_context(|| format!("cannot write {}", path.display()))
}

fn answers(args: &NewArgs, terminal: bool) -> Result<Answers> {
    let mut answers = Answers::default();
    if let Some(masters) = args.masters {
        answers.masters = masters;
    }
    if let Some(workers) = args.workers {
        answers.workers = workers;
    }
    if let Some(network) = &args.machine_network {
        answers.machine_network.clone_from(network);
    }
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| read(path)).transpose();
    let given: [(&str, Option<String>, &str, Field); 4] = [
        ("SSH public key (empty for none)", file(&args.ssh_key)?, "--ssh-key", |a| &mut a.ssh_key),
        ("Base domain", args.base_domain.clone(), "--base-domain", |a| &mut a.base_domain),
        ("Cluster name", args.name.clone(), "--name", |a| &mut a.name),
        ("Pull secret (not shown)", file(&args.pull_secret)?, "--pull-secret", |a| &mut a.pull_secret),
    ];
    for (question, flag, name, field) in given {
        match flag {
            Some(value) => *field(&mut answers) = value,
            None if name == "--ssh-key" && !terminal => {}
            None if terminal => ask(question, &mut answers, field, name == "--pull-secret")?,
            None => bail!("{name} is missing, and there is no terminal to ask on"),
        }
    }
    Ok(answers)
}

type Field = fn(&mut Answers) -> &mut String;

/// Until the answer is right. Empty takes what is in brackets.
fn ask(question: &str, answers: &mut Answers, field: Field, hidden: bool) -> Result<()> {
    let default = match question {
        "Cluster name" => field(answers).clone(),
        "SSH public key (empty for none)" => own_ssh_key(),
        _ => String::new(),
    };
    loop {
        let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        eprint!("? {question}{shown}: ");
        std::io::stderr().flush()?;
        let line = if hidden { without_echo(read_line)? } else { read_line()? };
        let Some(line) = line else { bail!("the answers ended before the questions") };
        let value = if line.is_empty() { default.clone() } else { line };
        let mut tried = answers.clone();
        *field(&mut tried) = value;
        let faults = tried.faults();
        if faults.is_empty() {
            *answers = tried;
            return Ok(());
        }
        eprintln!("  {}", faults.join("\n  "));
    }
}

fn read_line() -> Result<Option<String>> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_string()))
}

/// A secret is not left on the screen; the terminal is as before afterwards, whatever happened.
fn without_echo(read: impl Fn() -> Result<Option<String>>) -> Result<Option<String>> {
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin)?;
    let mut silent = before.clone();
    silent.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSANOW, &silent)?;
    let answer = read();
    tcsetattr(&stdin, SetArg::TCSANOW, &before)?;
    eprintln!();
    answer
}

fn own_ssh_key() -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let names = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];
    let found = names.iter().find_map(|name| std::fs::read_to_string(home.join(".ssh").join(name)).ok());
    found.unwrap_or_default().trim().to_string()
}

fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_string())
}
