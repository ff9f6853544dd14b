//! What can go wrong, in the words and with the exit codes of openshift-install.

use crate::Target;
use crate::config::{Problem, problem};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{}", explain(*target, problems).join("\n"))]
    Config { target: Target, problems: Vec<Problem> },
    #[error(
        "failed to fetch Install Config: {0} has neither an install-config.yaml nor the state of an earlier run"
    )]
    NoInstallConfig(PathBuf),
    #[error("failed to create asset store: failed to unmarshal state file: {0}")]
    State(String),
    #[error(
        "failed to fetch Bootstrap Ignition Config: {0}; run `seedling release build` or point --release at its output"
    )]
    Release(String),
    #[error(
        "failed to fetch Bootstrap Ignition Config: failed to fetch dependency of \"Bootstrap Ignition Config\": failed to \
         generate asset \"CVO Ignore\": {0}"
    )]
    Manifest(String),
    #[error("{}", expired(.0))]
    Expired(Vec<String>),
    #[error("cannot write YAML: {0}")]
    Yaml(String),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Pki(#[from] seedling_pki::PkiError),
    #[error("cannot hash the kubeadmin password: {0}")]
    Bcrypt(#[from] bcrypt::BcryptError),
    #[error(transparent)]
    Component(#[from] seedling_types::release::MissingComponent),
}

impl CreateError {
    pub fn io(path: &Path, error: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), error }
    }
    /// 3 for a bad install-config or hosts.yaml, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Config { .. }) { 3 } else { 1 }
    }
    /// A user's mistake is an error; the rest is fatal.
    pub fn level(&self) -> &'static str {
        if matches!(self, Self::Config { .. }) { "error" } else { "fatal" }
    }
}

fn explain(target: Target, problems: &[Problem]) -> Vec<String> {
    let first = match target {
        Target::InstallConfig => "Install Config",
        Target::Manifests => "Master Machines",
        Target::IgnitionConfigs => "Kubeconfig Admin Client",
    };
    let starts = ["failed to ", "invalid \""];
    let prefix = format!(
        "failed to fetch {first}: failed to load asset \"Install Config\": failed to create install config: "
    );
    let line = |line: String| {
        if starts.iter().any(|s| line.starts_with(s)) { format!("{prefix}{line}") } else { line }
    };
    problem::report(problems).into_iter().map(line).collect()
}

fn expired(names: &[String]) -> String {
    let mut lines: Vec<_> =
        names.iter().map(|name| format!("Bootstrap Ignition-Config Certificate {name}.")).collect();
    lines.push("Please regenerate ignition configuration files in a new directory.".into());
    lines.push(format!(
        "failed to fetch Bootstrap Ignition Config: failed to load asset \"Bootstrap Ignition Config\": {} certificates expired",
        names.len()
    ));
    lines.join("\n")
}
