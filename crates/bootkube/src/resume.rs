//! Which stages a run works on: the journal says what was done, done files are its views that people may remove.

use seedling_steps::Stage;
use seedling_steps::journal::{Event, Fate, Line, fold};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Run,
    Skip,
    /// Killed after the stage ended and before its done file was there.
    Finish,
    /// Done, and its done file was removed since: a person wants it to run again.
    Again,
    /// Not done, but there is a done file: a person wants it to be left out.
    ByHand,
}

/// `before` is the journal as this run found it.
pub(crate) fn resume(before: &[Line], who: &str, stage: &Stage, done_file: bool) -> Resume {
    if stage.done.is_none() {
        return Resume::Run;
    }
    let state = fold(before);
    // A check that failed without harm has a done file too.
    let ended = state.step(who, stage.name);
    let ended = ended.is_some_and(|s| matches!(s.fate, Fate::Done | Fate::Skipped | Fate::Failed));
    let last = before.iter().rev().find(|l| l.who == who && l.step.as_ref().is_none_or(|s| !s.contains('/')));
    let just_ended = last.is_some_and(|l| {
        l.step.as_deref() == Some(stage.name) && matches!(l.event, Event::End | Event::Skipped)
    });
    match (state.is_done(who, stage.name), done_file) {
        (_, true) if ended => Resume::Skip,
        (_, true) => Resume::ByHand,
        (true, false) if just_ended => Resume::Finish,
        (true, false) => Resume::Again,
        (false, false) => Resume::Run,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const STAGE: Stage = Stage { name: "b", done: Some("b"), ..Stage::EMPTY };
    const CHECKED_ALWAYS: Stage = Stage { done: None, ..STAGE };

    /// `step.event` each; a step alone ended, and no step is the service itself.
    pub(crate) fn lines(text: &str) -> Vec<Line> {
        let line = |word: &str| {
            let (step, event) = word.split_once('.').unwrap_or((word, ""));
            let event = match event {
                "begin" => Event::Begin,
                "failed" => Event::Failed,
                "skipped" => Event::Skipped,
                _ => Event::End,
            };
            Line::now("bootkube", Some(step).filter(|s| !s.is_empty()), event)
        };
        text.split_whitespace().map(line).collect()
    }

    #[test]
    fn the_journal_knows_and_a_persons_done_file_decides() {
        for (journal, done_file, want) in [
            ("", false, Resume::Run),
            (".begin a.begin a b.begin", false, Resume::Run),
            (".begin a.begin a b.begin b", false, Resume::Finish),
            (".begin b.begin b/part.begin b/part b", false, Resume::Finish),
            (".begin b.begin b.skipped", false, Resume::Finish),
            (".begin b.begin b c.begin", false, Resume::Again),
            (".begin b.begin b c.begin", true, Resume::Skip),
            (".begin b.begin b.failed c.begin", true, Resume::Skip),
            (".begin b.begin b.failed .failed", false, Resume::Run),
            (".begin b.begin", true, Resume::ByHand),
            ("", true, Resume::ByHand),
        ] {
            assert_eq!(resume(&lines(journal), "bootkube", &STAGE, done_file), want, "{journal}");
        }
        let done = lines("b.begin b c.begin");
        assert_eq!(resume(&done, "bootkube", &CHECKED_ALWAYS, false), Resume::Run);
    }
}
