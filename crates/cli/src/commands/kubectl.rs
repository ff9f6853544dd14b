//! `seedling kubectl …`: the payload's kubectl on a lab's kubeconfig, or on the one that is named.

use anyhow::{Context, Result};
use clap::Args;
use seedling_lab::Labs;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

#[derive(Args)]
pub(crate) struct KubectlArgs {
    /// The lab's name
    #[arg(long = "lab", env = "SEEDLING_LAB", default_value = "default", value_name = "NAME")]
    lab: String,
    /// Arguments for kubectl; with --kubeconfig among them, no lab is needed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: KubectlArgs) -> Result<ExitCode> {
    let (release, kubeconfig) = match names_a_kubeconfig(&args.args) {
        true => (seedling_release::default_cache().join("release"), None),
        false => {
            let lab = Labs::from_env().open(&args.lab)?;
            (lab.record.spec.release_dir.clone(), Some(("KUBECONFIG", lab.kubeconfig())))
        }
    };
    let kubectl = release.join("bin/kubectl");
    let error = Command::new(&kubectl).args(&args.args).envs(kubeconfig).exec();
    Err(error).with_context(|| format!("cannot run {}", kubectl.display()))
}

/// Behind `--` are the words of a command in a pod.
fn names_a_kubeconfig(args: &[String]) -> bool {
    let mut own = args.iter().take_while(|arg| *arg != "--");
    own.any(|arg| arg == "--kubeconfig" || arg.starts_with("--kubeconfig="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_of_ones_own_needs_no_lab() {
        for (words, named) in [
            ("get nodes", false),
            ("--kubeconfig k get nodes", true),
            ("get nodes --kubeconfig=k", true),
            ("exec pod -- oc --kubeconfig k", false),
        ] {
            let words: Vec<_> = words.split(' ').map(String::from).collect();
            assert_eq!(names_a_kubeconfig(&words), named, "{words:?}");
        }
    }
}
