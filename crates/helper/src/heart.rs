//! The helper's heartbeat: a process that was stopped, or whose tasks no longer get their turn, has not ended, and serves nobody. So
//! once a second it writes to the pipe that its parent gave it as standard input, and the parent counts how often it looked in vain.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{MissedTickBehavior, interval};

const BEAT: Duration = Duration::from_secs(1);
/// Looks in vain, a beat apart. On a machine with fifteen times more to do than it has cores, a beat was some seconds late.
const SILENT: u32 = 10;

/// For ever, or until nobody listens.
pub async fn beat() {
    let Ok(pipe) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut pipe = std::fs::File::from(pipe);
    let mut tick = interval(BEAT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if pipe.write_all(b".").is_err() {
            return;
        }
    }
}

/// What the parent has heard. It is counted in looks and not in time: when the whole machine slept, both were silent.
#[derive(Clone, Copy, Debug, Default)]
struct Pulse {
    /// A helper that never beat (another program, in a test) is not expected to.
    heard: bool,
    silent: u32,
}

impl Pulse {
    fn after(self, beaten: bool) -> Self {
        match beaten {
            true => Self { heard: true, silent: 0 },
            false => Self { silent: self.silent + 1, ..self },
        }
    }

    fn is_gone(self) -> bool {
        self.heard && self.silent >= SILENT
    }
}

/// Returns when it has been silent for too long, with what to say of it.
pub(crate) async fn silence(pipe: &Receiver) -> String {
    let mut pulse = Pulse::default();
    let mut tick = interval(BEAT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !pulse.is_gone() {
        tick.tick().await;
        pulse = pulse.after(beaten(pipe));
    }
    format!("was silent for {} s", (BEAT * SILENT).as_secs())
}

/// Since the last look.
fn beaten(pipe: &Receiver) -> bool {
    let mut beats = [0; 64];
    let mut any = false;
    while matches!(pipe.try_read(&mut beats), Ok(1..)) {
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_looks_in_vain_are_too_many() {
        let after =
            |beats: &[bool]| beats.iter().fold(Pulse::default(), |pulse, beaten| pulse.after(*beaten));
        let silent = |looks: usize| [&[true][..], &[false].repeat(looks)].concat();
        assert!(!after(&silent(9)).is_gone());
        assert!(after(&silent(10)).is_gone());
        assert!(!after(&[silent(9), silent(9)].concat()).is_gone(), "it beat in between");
        assert!(!after(&[false; 60]).is_gone(), "it never did");
    }
}
