//! `seedling helper install`: the systemd unit that comes with the package, for this config, confined to what this helper needs. Pure.

use seedling_types::HelperConfig;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub const NAME: &str = "seedling-helper.service";
const TEMPLATE: &str = include_str!("../../../dist/seedling-helper.service");

/// The unit for this program and config. Folders of its files that the template's sandbox does not let it write to are added.
pub fn unit(program: &Path, config_path: &Path, config: &HelperConfig) -> String {
    let state = Path::new("/var/lib/seedling/helper");
    let run = Path::new("/run/seedling-helper");
    let folders = [config.events.parent(), config.ready_file.parent()];
    let more: BTreeSet<PathBuf> = folders
        .into_iter()
        .flatten()
        .filter(|folder| !folder.starts_with(state) && !folder.starts_with(run))
        .map(Path::to_path_buf)
        .collect();
    let mut text = String::new();
    for line in TEMPLATE.lines() {
        match line.split_once('=') {
            Some(("ExecStart", _)) => {
                text += &format!(
                    "ExecStart={} helper run --config {}\n",
                    program.display(),
                    config_path.display()
                );
            }
            Some(("ConditionPathExists", _)) => {
                text += &format!("ConditionPathExists={}\n", config_path.display());
            }
            Some(("RuntimeDirectory", _)) => {
                text += &format!("{line}\n");
                for folder in &more {
                    text += &format!("ReadWritePaths={}\n", folder.display());
                }
            }
            _ if line.starts_with("# An example") => {}
            _ => text += &format!("{line}\n"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config;

    #[test]
    fn the_unit_is_for_this_config_and_may_write_where_it_must() {
        let mut config = config();
        config.events = "/srv/seedling/events.jsonl".into();
        config.ready_file = "/run/seedling-helper/ready".into();
        let text = unit(Path::new("/usr/local/bin/seedling"), Path::new("/srv/helper.yaml"), &config);
        for line in [
            "ExecStart=/usr/local/bin/seedling helper run --config /srv/helper.yaml",
            "ConditionPathExists=/srv/helper.yaml",
            "ReadWritePaths=/srv/seedling",
            "ProtectSystem=strict",
            "Restart=always",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        config.events = "/var/lib/seedling/helper/events.jsonl".into();
        assert!(!unit(Path::new("/a"), Path::new("/b"), &config).contains("ReadWritePaths"));
    }
}
