//! One file on its way to one client, as a state: what was heard, or that nothing was, in; what to send next out. Pure.
//!
//! Blocks are counted from 1 without end; on the wire the count is cut to 16 bits and so starts over from 0 in large files.

use super::packet::Options;

/// Without a wish (RFC 1350), and the largest that fits an Ethernet frame: fragments are lost together.
const BLOCK: u16 = 512;
const LARGEST_BLOCK: u16 = 1468;
const LARGEST_WINDOW: u16 = 64;
/// Times that a packet is sent again before the client counts as gone.
const TRIES: u32 = 6;
/// Seconds until it is first sent again, without a wish; then ever later.
const TIMEOUT: u64 = 1;
const LONGEST_TIMEOUT: u64 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    size: u64,
    block: u16,
    window: u16,
    timeout: Option<u8>,
    /// The client has all up to this block.
    acknowledged: u64,
    /// The last that was sent.
    sent: u64,
    /// The client has not yet agreed to the options.
    proposes: bool,
    tries: u32,
    /// Asked for again by a client that missed the first block of a window; once for each place.
    repeated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The granted options.
    Propose,
    /// These blocks, both ends included.
    Send {
        from: u64,
        to: u64,
    },
    Wait,
    /// The client has everything.
    Done,
    GiveUp,
}

impl Transfer {
    /// And the options that the client gets.
    pub fn new(size: u64, wishes: &Options) -> (Self, Options) {
        let granted = Options {
            block: wishes.block.map(|block| block.min(LARGEST_BLOCK)),
            size: wishes.size.map(|_| size),
            timeout: wishes.timeout,
            window: wishes.window.map(|window| window.min(LARGEST_WINDOW)),
        };
        let transfer = Self {
            size,
            block: granted.block.unwrap_or(BLOCK),
            window: granted.window.unwrap_or(1),
            timeout: granted.timeout,
            acknowledged: 0,
            sent: 0,
            proposes: !granted.is_empty(),
            tries: 0,
            repeated: false,
        };
        (transfer, granted)
    }

    pub fn start(&mut self) -> Step {
        if self.proposes { Step::Propose } else { self.next_window() }
    }

    /// The last block is the first that is not full, even if it is empty: that is how the client knows.
    fn last(&self) -> u64 {
        self.size / u64::from(self.block) + 1
    }

    /// Where a block's bytes are.
    pub fn bytes(&self, block: u64) -> std::ops::Range<u64> {
        let from = (block.saturating_sub(1)) * u64::from(self.block);
        from.min(self.size)..(from + u64::from(self.block)).min(self.size)
    }

    /// Of the file, so far.
    pub fn delivered(&self) -> u64 {
        self.bytes(self.acknowledged).end.min(if self.acknowledged == 0 { 0 } else { self.size })
    }

    pub fn heard(&mut self, block: u16) -> Step {
        if self.proposes {
            if block != 0 {
                return Step::Wait;
            }
            self.proposes = false;
            self.tries = 0;
            return self.next_window();
        }
        if self.is_done() {
            return Step::Done;
        }
        // Only what is on its way can be acknowledged.
        let ahead = block.wrapping_sub(cut(self.acknowledged));
        let acknowledged = self.acknowledged + u64::from(ahead);
        if acknowledged > self.sent {
            return Step::Wait;
        }
        if ahead == 0 {
            // With one block in a window such an answer is late or doubled, and to answer it would double everything after it.
            if self.window == 1 || self.repeated || self.sent == self.acknowledged {
                return Step::Wait;
            }
            self.repeated = true;
            return self.next_window();
        }
        self.acknowledged = acknowledged;
        (self.tries, self.repeated) = (0, false);
        if self.is_done() { Step::Done } else { self.next_window() }
    }

    fn is_done(&self) -> bool {
        self.acknowledged == self.last()
    }

    pub fn silence(&mut self) -> Step {
        if self.is_done() {
            return Step::Done;
        }
        self.tries += 1;
        if self.tries > TRIES {
            return Step::GiveUp;
        }
        if self.proposes { Step::Propose } else { self.next_window() }
    }

    /// Seconds of silence until `silence` is due.
    pub fn patience(&self) -> u64 {
        match self.timeout {
            Some(seconds) => seconds.into(),
            None => (TIMEOUT << self.tries.min(8)).min(LONGEST_TIMEOUT),
        }
    }

    fn next_window(&mut self) -> Step {
        let to = (self.acknowledged + u64::from(self.window)).min(self.last());
        self.sent = to;
        Step::Send { from: self.acknowledged + 1, to }
    }
}

/// As it is on the wire.
pub fn cut(block: u64) -> u16 {
    (block & 0xffff) as u16
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
