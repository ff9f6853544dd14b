//! `seedling --help`: commands by what a person wants to do. What machines run themselves is hidden.

use clap::Command;
use std::fmt::Write;

/// Every command that is not hidden is in exactly one group; a test holds it.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Install a cluster",
        &["init", "explain", "preflight", "create", "graph", "release", "image", "helper", "wait-for"],
    ),
    ("Try it in a lab on this machine", &["lab", "kubectl", "chaos"]),
    ("Go through a bring-up step by step", &["stage", "render"]),
    (
        "Observe a cluster",
        &["status", "dashboard", "verify", "gather", "analyze", "timeline", "csr", "probe"],
    ),
    ("Operate a cluster", &["certs", "etcd", "node"]),
    ("Other", &["completion", "version"]),
];

/// The command with a help text in groups; the words are the commands' own.
pub(crate) fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let (header, name) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_string();
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for sub in commands.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name}{:<11}{name:#} {about}", sub.get_name());
        }
    }
    text += "\n`seedling COMMAND --help` says more about a command.\n";
    if !command.is_disable_help_flag_set() {
        let _ = writeln!(text, "\n{header}Options:{header:#}\n{{options}}");
    }
    text + "{after-help}"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::Cli::command();
        let listed: Vec<_> = GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        let once: BTreeSet<_> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len(), "{listed:?}");
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
        assert_eq!(once, shown.map(Command::get_name).collect());
    }

    /// On every level, each command is understood by its line, and none is listed that only refuses.
    #[test]
    fn what_is_listed_works_and_says_what_it_does() {
        fn check(command: &Command) {
            for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
                let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
                let refuses = about.starts_with("Refused") || about.starts_with("Not supported");
                assert!(!about.is_empty() && !refuses, "{}: {about:?}", sub.get_name());
                for argument in sub.get_arguments().filter(|a| !a.is_hide_set()) {
                    assert!(argument.get_help().is_some(), "{} {}", sub.get_name(), argument.get_id());
                }
                check(sub);
            }
        }
        check(&crate::Cli::command());
    }

    #[test]
    fn help_shows_groups_and_each_command_once() {
        let help = grouped(crate::Cli::command()).render_long_help().to_string();
        assert!(
            help.contains("Exit codes:") && help.contains("\nOptions:\n") && !help.contains('{'),
            "{help}"
        );
        for (title, commands) in GROUPS {
            assert!(help.contains(&format!("\n{title}:\n")), "{help}");
            for name in *commands {
                let lines = help.lines().filter(|line| line.trim_start().split(' ').next() == Some(*name));
                assert_eq!(lines.count(), 1, "{name}\n{help}");
            }
        }
        assert!(!help.contains("destroy") && !help.contains("bootkube"), "{help}");
    }
}
