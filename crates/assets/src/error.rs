//! What can go wrong, in the words and with the exit codes of openshift-install.

use crate::Target;
use crate::config::{Problem, problem};
use std::path::{Path, PathBuf};

pub type Result<T, E = CreateError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{}", explain(*target, problems).join("\n"))]
    Config { target: Target, problems: Vec<Problem> },
    #[error(
        "failed to fetch Install Config: {0} has neither an install-config.yaml nor the state of an earlier run"
    )]
    NoInstallConfig(PathBuf),
    #[error("failed to create asset store: failed to unmarshal state file \"{}\": {why}", path.display())]
    State { path: PathBuf, why: String },
    #[error("{where_}: {error}")]
    Within { where_: String, error: Box<CreateError> },
    #[error("{0}; run `seedling release build` or point --release at its output")]
    Release(String),
    /// A manifest of the user's that is no object, or one object in two files.
    #[error("{why}")]
    Manifest { warning: Option<String>, why: String },
    #[error("{} certificates expired", .0.len())]
    Expired(Vec<Stale>),
    #[error("{}", list(.0))]
    Refused(Vec<String>),
    #[error("failed to unmarshal {file}: {why}")]
    Unmarshal { file: String, why: String },
    #[error("tls/{file}: {why}")]
    OwnSigner { file: String, why: String },
    /// A mistake in this program.
    #[error("{asset} is made of {need}, and does not declare it")]
    Undeclared { asset: &'static str, need: &'static str },
    #[error("{0} is not made yet")]
    Missing(&'static str),
    #[error("cannot create the cluster because {0:?} is a UPI platform")]
    Infrastructure(String),
    #[error("this install method does not support Single Node installation on platform {0}")]
    SingleNode(&'static str),
    #[error("{0} has no Ignition configs to refresh; `seedling create ignition-configs` makes them")]
    NothingToRefresh(PathBuf),
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
    #[error(transparent)]
    Template(#[from] seedling_types::template::TemplateError),
}

/// A certificate that is too old to start a cluster with.
#[derive(Debug)]
pub struct Stale {
    pub file: String,
    /// RFC 3339.
    pub expired_at: String,
    /// In whole hours.
    pub age_hours: i64,
}

impl CreateError {
    pub fn io(path: &Path, error: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), error }
    }
    /// Says where on the way through the graph it happened. What a user has to correct is said at once, without that.
    pub fn within(self, place: &str) -> Self {
        match self {
            Self::Config { .. } => self,
            error => Self::Within { where_: place.into(), error: Box::new(error) },
        }
    }
    /// 3 for a bad install-config or hosts.yaml, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Config { .. }) { 3 } else { 1 }
    }
    /// Log lines, each with its level: first what explains the last one.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let level = if matches!(self, Self::Config { .. }) { "error" } else { "fatal" };
        let mut lines = self.root().details();
        lines.extend(self.to_string().lines().map(|line| (level, line.to_string())));
        if let Self::Expired(stale) = self.root() {
            let oldest = stale.iter().map(|s| s.age_hours).max().unwrap_or_default();
            let hint = format!(
                "These assets were made {} ago. `seedling certs refresh` renews their certificates and keeps the cluster's identity.",
                age(oldest)
            );
            lines.push(("info", hint));
        }
        lines
    }
    fn root(&self) -> &Self {
        match self {
            Self::Within { error, .. } => error.root(),
            error => error,
        }
    }
    fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Expired(stale) => {
                let line = |s: &Stale| {
                    let text = format!(
                        "Bootstrap Ignition-Config Certificate {} expired at {}.",
                        s.file, s.expired_at
                    );
                    ("error", text)
                };
                let advice = "Please regenerate ignition configuration files in a new directory.";
                stale.iter().map(line).chain([("warning", advice.into())]).collect()
            }
            Self::Config { problems, .. } => {
                problem::warnings(problems).into_iter().map(|warning| ("warning", warning)).collect()
            }
            Self::Manifest { warning: Some(warning), .. } => vec![("warning", warning.clone())],
            _ => vec![],
        }
    }
}

/// One as it is, several in brackets.
fn list(all: &[String]) -> String {
    if let [one] = all { one.clone() } else { format!("[{}]", all.join(", ")) }
}

fn age(hours: i64) -> String {
    match hours {
        ..48 => format!("{hours} hours"),
        _ => format!("{} days", hours / 24),
    }
}

fn explain(target: Target, problems: &[Problem]) -> Vec<String> {
    let first = match target {
        Target::InstallConfig => "Install Config",
        Target::Manifests => "Master Machines",
        Target::IgnitionConfigs | Target::SingleNodeIgnitionConfig => "Kubeconfig Admin Client",
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
