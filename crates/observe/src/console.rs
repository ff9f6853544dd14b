//! How a line looks: `INFO message` in colour for people, `level=info msg=message` for programs.

use std::io::{IsTerminal, Write};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
    Fatal,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
            Level::Fatal => "fatal",
        }
    }
    fn colour(self) -> u8 {
        match self {
            Level::Debug => 37,
            Level::Info => 36,
            Level::Warning => 33,
            Level::Error | Level::Fatal => 31,
        }
    }
}

impl std::str::FromStr for Level {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s.to_lowercase().as_str() {
            "trace" | "debug" => Level::Debug,
            "info" => Level::Info,
            "warn" | "warning" => Level::Warning,
            "error" => Level::Error,
            "fatal" | "panic" => Level::Fatal,
            // The words of the library that openshift-install logs with.
            _ => return Err(format!("not a valid logrus Level: {s:?}")),
        })
    }
}

/// Writes to standard error, and every level to `.openshift_install.log` where there is one.
pub struct Console {
    terminal: bool,
    level: Level,
    file: Option<std::fs::File>,
}

impl Console {
    /// `dir` is the asset directory.
    pub fn new(level: Level, dir: &Path) -> Self {
        let log = dir.join(".openshift_install.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log).ok();
        Self { terminal: std::io::stderr().is_terminal(), level, file }
    }

    pub fn say(&mut self, level: Level, message: &str) {
        // One line of text is one line of log; an empty message is still a line.
        for line in message.split('\n') {
            if level >= self.level {
                eprintln!("{}", form(level, line, self.terminal));
            }
            if let Some(file) = &mut self.file {
                let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                let _ = writeln!(file, "time=\"{time}\" level={} msg={line:?}", level.name());
            }
        }
    }
}

/// To standard error only.
pub fn say(level: Level, message: &str) {
    let terminal = std::io::stderr().is_terminal();
    message.split('\n').for_each(|line| eprintln!("{}", form(level, line, terminal)));
}

fn form(level: Level, line: &str, terminal: bool) -> String {
    match (terminal, line) {
        (true, _) => format!("\x1b[{}m{}\x1b[0m {line:<44} ", level.colour(), level.name().to_uppercase()),
        (false, "") => format!("level={}", level.name()),
        (false, _) => format!("level={} msg={line}", level.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(form(Level::Info, "API v1.36.4 up", false), "level=info msg=API v1.36.4 up");
        assert_eq!(form(Level::Info, "", false), "level=info");
        let long = "Consuming Install Config from target directory";
        assert_eq!(form(Level::Info, long, true), format!("\x1b[36mINFO\x1b[0m {long} "));
        let short = form(Level::Warning, "x", true);
        assert_eq!(short, format!("\x1b[33mWARNING\x1b[0m x{} ", " ".repeat(43)));
    }

    #[test]
    fn levels() {
        assert_eq!("warn".parse(), Ok(Level::Warning));
        assert_eq!("Debug".parse(), Ok(Level::Debug));
        assert_eq!("loud".parse::<Level>(), Err("not a valid logrus Level: \"loud\"".into()));
        assert!(Level::Error > Level::Info);
    }
}
