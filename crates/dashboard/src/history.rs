//! The stream's memory: the story as it is, and the last changes, so that a page that was away for a moment gets only what it missed.

use crate::change::Change;
use crate::story::Story;
use std::collections::VecDeque;

/// A page that missed more gets everything anew.
const KEPT: usize = 200;

#[derive(Debug)]
pub(crate) struct History {
    /// This process: numbers of another one say nothing.
    epoch: String,
    number: u64,
    story: Story,
    changes: VecDeque<(u64, Change)>,
}

/// What a page needs to be where we are, and the id that says so.
#[derive(Debug, PartialEq)]
pub(crate) enum News {
    Snapshot(String, Story),
    Changes(Vec<(String, Change)>),
}

impl History {
    pub(crate) fn new(epoch: String) -> Self {
        Self { epoch, number: 0, story: Story::new(), changes: VecDeque::new() }
    }

    /// False: nothing is new.
    pub(crate) fn update(&mut self, story: Story) -> bool {
        let change = Change::between(&self.story, &story);
        if change.is_empty() {
            return false;
        }
        self.number += 1;
        self.story = story;
        self.changes.push_back((self.number, change));
        if self.changes.len() > KEPT {
            self.changes.pop_front();
        }
        true
    }

    pub(crate) fn story(&self) -> &Story {
        &self.story
    }

    /// For one who has seen the id `last`.
    pub(crate) fn after(&self, last: Option<&str>) -> News {
        let seen = last.and_then(|id| id.strip_prefix(&self.epoch)?.strip_prefix('-')?.parse::<u64>().ok());
        let oldest = self.changes.front().map_or(self.number + 1, |(number, _)| *number);
        match seen {
            Some(seen) if seen <= self.number && seen + 1 >= oldest => {
                let missed = self.changes.iter().filter(|(number, _)| *number > seen);
                News::Changes(missed.map(|(number, change)| (self.id(*number), change.clone())).collect())
            }
            _ => News::Snapshot(self.id(self.number), self.story.clone()),
        }
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Part;

    fn story(n: usize) -> Story {
        let part = Part::Bars { place: n, node: String::new(), bars: vec![] };
        Story::from([("a".to_string(), part)])
    }

    #[test]
    fn who_was_away_gets_what_it_missed_or_everything() {
        let mut history = History::new("e".into());
        assert_eq!(history.after(None), News::Snapshot("e-0".into(), Story::new()));
        assert!(history.update(story(1)) && !history.update(story(1)) && history.update(story(2)));
        let ids = |news| match news {
            News::Changes(changes) => changes.into_iter().map(|(id, _)| id).collect(),
            News::Snapshot(id, _) => vec![format!("all {id}")],
        };
        let cases: [(Option<&str>, &[&str]); 7] = [
            (None, &["all e-2"]),
            (Some("e-0"), &["e-1", "e-2"]),
            (Some("e-1"), &["e-2"]),
            (Some("e-2"), &[]),
            (Some("e-3"), &["all e-2"]),
            (Some("f-1"), &["all e-2"]),
            (Some("e-x"), &["all e-2"]),
        ];
        for (last, want) in cases {
            assert_eq!(ids(history.after(last)), want, "{last:?}");
        }
        (3..3 + KEPT).for_each(|n| assert!(history.update(story(n))));
        assert_eq!(ids(history.after(Some("e-1"))), [format!("all e-{}", KEPT + 2)]);
        assert_eq!(ids(history.after(Some("e-2"))).len(), KEPT);
    }
}
