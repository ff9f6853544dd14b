//! The whole terminal, for a live view: the alternate screen, only changed lines drawn, everything put back at the end.

use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::io::{self, Read, Write};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

pub(super) struct Screen {
    before: Option<Termios>,
    shown: Vec<String>,
    size: (usize, usize),
    keys: mpsc::Receiver<u8>,
    resized: Signal,
    ends: [Signal; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Quit,
    Resized,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let resized = signal(SignalKind::window_change())?;
        let ends = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        let stdin = io::stdin();
        let before = termios::tcgetattr(&stdin).ok();
        if let Some(before) = &before {
            // Keys come one by one and are not echoed; Ctrl-C stays a signal.
            let mut quiet = before.clone();
            quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            termios::tcsetattr(&stdin, OptionalActions::Now, &quiet)?;
        }
        let otherwise = std::panic::take_hook();
        let restore = before.clone();
        std::panic::set_hook(Box::new(move |panic| {
            put_back(restore.as_ref());
            otherwise(panic);
        }));
        print!("{ENTER}");
        io::stdout().flush()?;
        Ok(Self { before, shown: vec![], size: (0, 0), keys: read_keys(), resized, ends })
    }

    /// Draws the lines that differ from those that are there.
    pub(super) fn show(&mut self, lines: &[String]) -> io::Result<()> {
        let size = size();
        let mut text = String::new();
        if size != self.size {
            text += "\x1b[2J";
            (self.size, self.shown) = (size, vec![]);
        }
        let next = fit(lines, size);
        text += &difference(&self.shown, &next);
        self.shown = next;
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    pub(super) async fn event(&mut self) -> Event {
        let [interrupt, terminate, hangup] = &mut self.ends;
        loop {
            tokio::select! {
                key = self.keys.recv() => match key {
                    Some(b'q' | b'Q') => return Event::Quit,
                    Some(_) => {}
                    // Nobody can press a key any more: only signals end it.
                    None => std::future::pending().await,
                },
                _ = self.resized.recv() => return Event::Resized,
                _ = interrupt.recv() => return Event::Quit,
                _ = terminate.recv() => return Event::Quit,
                _ = hangup.recv() => return Event::Quit,
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put_back(self.before.as_ref());
    }
}

fn put_back(before: Option<&Termios>) {
    if let Some(before) = before {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
    }
    let mut stdout = io::stdout();
    let _ = stdout.write_all(LEAVE.as_bytes()).and_then(|()| stdout.flush());
}

/// A thread that blocks in `read`; it ends with the process.
fn read_keys() -> mpsc::Receiver<u8> {
    let (tell, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut key = [0];
        while io::stdin().read(&mut key).is_ok_and(|n| n > 0) && tell.blocking_send(key[0]).is_ok() {}
    });
    keys
}

/// Columns and rows.
fn size() -> (usize, usize) {
    let size = termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// What has room: too long lines and too many of them are cut.
fn fit(lines: &[String], (columns, rows): (usize, usize)) -> Vec<String> {
    let cut = |line: &String| match line.chars().count() > columns {
        true => line.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => line.clone(),
    };
    match lines.split_last() {
        // The last line says how to get out.
        Some((last, others)) if lines.len() > rows => {
            others.iter().take(rows.saturating_sub(1)).chain([last]).map(cut).collect()
        }
        _ => lines.iter().map(cut).collect(),
    }
}

/// The escape sequences that turn one screen into another.
fn difference(before: &[String], after: &[String]) -> String {
    let mut text = String::new();
    for row in 0..before.len().max(after.len()) {
        let (old, new) = (before.get(row), after.get(row));
        if old != new {
            text += &format!("\x1b[{};1H{}\x1b[K", row + 1, new.map_or("", String::as_str));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_what_changed_is_drawn() {
        let before = lines(&["a", "b", "c"]);
        assert_eq!(difference(&before, &before), "");
        assert_eq!(difference(&before, &lines(&["a", "x"])), "\x1b[2;1Hx\x1b[K\x1b[3;1H\x1b[K");
        assert_eq!(difference(&[], &lines(&["a"])), "\x1b[1;1Ha\x1b[K");
    }

    #[test]
    fn what_has_no_room_is_cut() {
        assert_eq!(fit(&lines(&["abcdef", "ab", "z"]), (4, 2)), ["abc…", "z"]);
        assert_eq!(fit(&lines(&["a", "b"]), (4, 2)), ["a", "b"]);
        assert_eq!(fit(&lines(&["·····"]), (5, 9)), ["·····"]);
    }
}
