//! How often a loop looks: the one table of these times. Pure.

use super::Next;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Changes come in bursts; one look is enough for all of one. Zero where somebody waits for each.
    pub burst: Duration,
    /// Until the next look when no input changes: after `Next::Busy`, and after `Next::Quiet`.
    pub busy: Duration,
    pub quiet: Duration,
    /// After the first failure; twice as long after each further one, up to the longest. Of this, between a half and all is waited.
    pub retry: Duration,
    pub longest: Duration,
    /// A reconcile that takes longer is dropped and begun again.
    pub limit: Duration,
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Pace {
    pub const USUAL: Self =
        Self { burst: ms(50), busy: s(1), quiet: s(60), retry: ms(500), longest: s(2), limit: s(300) };
    /// For machines that cannot continue without an answer: certificates to approve, Nodes to label. Whether a watch fails is only
    /// seen by looking.
    pub const AT_ONCE: Self = Self { burst: Duration::ZERO, quiet: s(10), longest: s(1), ..Self::USUAL };
    /// Reports of all nodes, handled together.
    pub const DAEMON_SET: Self = Self { burst: ms(100), ..Self::USUAL };
    /// Machine-config servers are asked whether they answer.
    pub const ANSWERS: Self = Self { quiet: s(30), ..Self::USUAL };
    /// A learner catches up within tens of milliseconds, without an event.
    pub const MEMBERS: Self =
        Self { busy: ms(200), quiet: s(10), retry: ms(200), longest: ms(200), ..Self::USUAL };

    /// Until the next look. `ended`: what the last one said, unless it failed, for the `failures`-th time in a row. `share` is random,
    /// between a half and one, so that not everybody who failed with the same server comes back at the same moment.
    pub fn pause(&self, ended: Option<Next>, failures: u32, share: f64) -> Duration {
        match ended {
            Some(Next::Busy) => self.busy,
            Some(Next::Quiet | Next::Waits(_)) => self.quiet,
            None => {
                let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
                self.retry.saturating_mul(doubled).min(self.longest).mul_f64(share)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_depends_on_the_last() {
        let (pace, all, half) = (Pace::USUAL, 1.0, 0.5);
        for (ended, failures, share, want) in [
            (Some(Next::Busy), 0, half, s(1)),
            (Some(Next::Quiet), 0, half, s(60)),
            (Some(Next::Waits("x")), 0, half, s(60)),
            (None, 1, half, ms(250)),
            (None, 1, all, ms(500)),
            (None, 2, half, ms(500)),
            (None, 2, all, s(1)),
            (None, 3, all, s(2)),
            (None, 4, all, s(2)),
            (None, u32::MAX, half, s(1)),
        ] {
            assert_eq!(pace.pause(ended, failures, share), want, "{ended:?} {failures} {share}");
        }
    }

    #[test]
    fn chance_stays_within_its_bounds() {
        for _ in 0..1000 {
            let pause = Pace::USUAL.pause(None, 1, seedling_cluster::chance());
            assert!((ms(250)..ms(500)).contains(&pause), "{pause:?}");
        }
    }

    #[test]
    fn what_the_bring_up_waits_for_is_not_slowed_down() {
        for pace in [Pace::USUAL, Pace::AT_ONCE, Pace::DAEMON_SET, Pace::ANSWERS, Pace::MEMBERS] {
            assert!(
                pace.burst <= ms(100) && pace.busy <= s(1) && pace.retry <= ms(500) && pace.longest <= s(2)
            );
        }
    }
}
