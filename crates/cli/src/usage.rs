//! The command line: flags where openshift-install takes them, and its words for a wrong one.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// openshift-install takes these two in front of a command as well.
const ANYWHERE: [&str; 2] = ["--dir", "--log-level"];
/// The commands that it has, too.
const UPSTREAMS: [&str; 8] =
    ["completion", "create", "destroy", "explain", "gather", "graph", "version", "wait-for"];
const GROUPS: [&str; 4] = ["create", "destroy", "gather", "wait-for"];

/// `--dir D create manifests` and `create --dir D manifests` are `create manifests --dir D`.
pub(crate) fn arguments(given: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut given = given.into_iter();
    let mut command: Vec<_> = given.next().into_iter().collect();
    let mut flags = Vec::new();
    while let Some(argument) = given.next() {
        let text = argument.to_string_lossy().into_owned();
        let (name, value) = text.split_once('=').map_or((text.as_str(), None), |(n, v)| (n, Some(v)));
        if ANYWHERE.contains(&name) {
            let next = if value.is_none() { given.next() } else { None };
            flags.extend([argument].into_iter().chain(next));
            continue;
        }
        command.push(argument);
        // Behind the command flags are where they belong.
        if command.len() > 2 || !GROUPS.contains(&name) {
            break;
        }
    }
    command.extend(given);
    command.extend(flags);
    command
}

/// As the parser says it on a terminal and of our own commands; else openshift-install's line first, then what the parser advises.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(1).into();
    let first = std::env::args().nth(1).unwrap_or_default();
    let ours =
        crate::Cli::command().find_subcommand(&first).is_some() && !UPSTREAMS.contains(&first.as_str());
    if !error.use_stderr() || std::io::stderr().is_terminal() || ours {
        let _ = error.print();
        return code;
    }
    let text = error.render().to_string();
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let time = now.format(&Rfc3339).unwrap_or_default();
    let what = format!("Error executing seedling: {}", words(error, &text));
    eprintln!("time={time:?} level=fatal msg={what:?}");
    for line in text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty()) {
        eprintln!("level=info msg={line}");
    }
    code
}

fn words(error: &clap::Error, text: &str) -> String {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => name.as_str(),
        _ => "",
    };
    let argument = named(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with("--") => format!("unknown flag: {argument}"),
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let letter = argument.chars().nth(1).unwrap_or('-');
            format!("unknown shorthand flag: {letter:?} in {argument}")
        }
        ErrorKind::UnknownArgument => "accepts 0 arg(s), received 1".into(),
        ErrorKind::InvalidSubcommand => {
            format!("unknown command {:?} for \"seedling\"", named(ContextKind::InvalidSubcommand))
        }
        _ => text.lines().next().unwrap_or_default().trim_start_matches("error: ").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_in_front_of_a_command() {
        let cases = [
            ("x --dir d create manifests", "x create manifests --dir d"),
            (
                "x --dir=d create --log-level debug manifests -h",
                "x create manifests -h --dir=d --log-level debug",
            ),
            ("x create manifests --dir d", "x create manifests --dir d"),
            ("x kubectl --dir d get", "x kubectl --dir d get"),
            ("x --dir d", "x --dir d"),
            ("x --dir", "x --dir"),
            ("x", "x"),
        ];
        for (given, want) in cases {
            let got = arguments(given.split(' ').map(OsString::from));
            assert_eq!(got, want.split(' ').map(OsString::from).collect::<Vec<_>>(), "{given}");
        }
    }
}
