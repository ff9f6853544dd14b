//! What is waited for, in words: a wait takes nothing else, so nobody waits for something that `seedling explain` does not know.

use seedling_types::description::{Description, Kind, Text};

/// A condition, where it is written down: see [`conditions!`](crate::conditions).
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    pub name: &'static str,
    /// Behind "waiting for"; what depends on the wait is in capitals, and [`Condition::with`](crate::Condition::with) fills it in.
    pub sentence: &'static str,
    pub text: Text,
}

impl Awaited {
    /// For tests and benchmarks alone: nobody asks `explain` for it.
    pub const fn in_test(sentence: &'static str) -> Self {
        Self { name: "in-test", sentence, text: Text::EMPTY }
    }

    pub fn describe(&self) -> Description {
        let described = Description::new(Kind::Condition, self.name, &self.text);
        described
            .also(self.sentence)
            .fact("in logs", format!("waiting for {}: what is seen instead", self.sentence))
    }
}

/// A crate's conditions, and a list of all of them for `explain` and the book. One that does not say what it is, why it is
/// waited for, how a person checks it, what usually goes wrong and what belongs to it does not compile.
#[macro_export]
macro_rules! conditions {
    ($vis:vis $list:ident; $($constant:ident = $name:literal, $sentence:literal: {
        what: $what:literal,
        why: $why:literal,
        check: $check:literal,
        fails: $fails:expr,
        see: $see:expr,
    })+) => {
        $(pub(crate) static $constant: $crate::Awaited = $crate::Awaited {
            name: $name,
            sentence: $sentence,
            text: $crate::Text { what: $what, why: $why, check: $check, fails: $fails, see: $see, ..$crate::Text::EMPTY },
        };)+
        $vis static $list: &[&$crate::Awaited] = &[$(&$constant),+];
    };
}
