//! Nodes' journals for people: one line a step, of all nodes, in the order in which they began.

use jiff::Timestamp;
use seedling_steps::journal::{Fate, State, Step};
use serde::Serialize;
use std::fmt::Write;

/// A node and what its journal amounts to.
#[derive(Clone, Debug, Serialize)]
pub struct NodeJournal {
    pub node: String,
    #[serde(flatten)]
    pub state: State,
}

/// `now` in milliseconds since 1970: how long what is open has been so.
pub fn table(journals: &[NodeJournal], now: i64) -> String {
    let mut rows: Vec<(i64, &str, &str, &Step)> = Vec::new();
    for NodeJournal { node, state } in journals {
        for service in &state.services {
            rows.extend(service.steps.iter().map(|s| (began(s), node.as_str(), service.name.as_str(), s)));
        }
    }
    rows.sort_by_key(|(at, ..)| *at);
    let mut text = String::new();
    let _ =
        writeln!(text, "{:<12} {:<10} {:<37} {:<33} {:>7}  STATE", "BEGAN", "NODE", "WHO", "STEP", "TOOK");
    for (at, node, who, step) in rows {
        let began = Timestamp::from_millisecond(at).map(|t| t.strftime("%H:%M:%S%.3f").to_string());
        let open = if step.fate == Fate::Open { now - step.since } else { 0 };
        let took = step.seconds + open as f64 / 1000.0;
        let state = state(step);
        let (began, name) = (began.unwrap_or_default(), &step.name);
        let _ = writeln!(text, "{began:<12} {node:<10} {who:<37} {name:<33} {took:>6.1}s  {state}");
    }
    text
}

fn began(step: &Step) -> i64 {
    step.runs.first().map_or(step.since, |(from, _)| *from)
}

fn state(step: &Step) -> String {
    let word = match step.fate {
        Fate::Open => "open",
        Fate::Done => "done",
        Fate::Failed => "failed",
        Fate::Skipped => "skipped",
        Fate::Interrupted => "interrupted",
    };
    let mut text = word.to_string();
    if step.runs.len() > 1 {
        let _ = write!(text, ", {} runs", step.runs.len());
    }
    for (name, value) in &step.facts {
        let _ = write!(text, ", {name} {value}");
    }
    match &step.note {
        Some(note) => format!("{text}: {note}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_steps::journal::{fold, lines};

    #[test]
    fn steps_of_all_nodes_in_the_order_of_their_beginning() {
        let journal =
            |node: &str, text: &str| NodeJournal { node: node.into(), state: fold(&lines(text.as_bytes())) };
        let journals = [
            journal(
                "bootstrap",
                "{\"time\":\"1970-01-01T00:00:02Z\",\"who\":\"bootkube\",\"step\":\"a\",\"event\":\"begin\"}\n",
            ),
            journal(
                "master-0",
                "{\"time\":\"1970-01-01T00:00:01Z\",\"who\":\"boot\",\"step\":\"network\",\"event\":\"begin\"}\n\
                 {\"time\":\"1970-01-01T00:00:03.500Z\",\"who\":\"boot\",\"step\":\"network\",\"event\":\"failed\",\"note\":\"no card\"}\n",
            ),
        ];
        let said = table(&journals, 5000);
        let words: Vec<Vec<&str>> = said.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(
            words[0],
            ["00:00:01.000", "master-0", "boot", "network", "2.5s", "failed:", "no", "card"]
        );
        assert_eq!(words[1], ["00:00:02.000", "bootstrap", "bootkube", "a", "3.0s", "open"]);
    }
}
