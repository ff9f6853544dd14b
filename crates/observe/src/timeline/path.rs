//! The critical path, from the end backwards: at each moment, which work was the one that the rest waited for.

use super::{Bar, Part, Row};

/// Shorter than this is no gap: clocks of several programs meet here.
const CLOSE: f64 = 0.02;

/// Backwards from the end: the work that ended last before what came next began. Where nobody worked, the wait that was on.
pub(super) fn critical(rows: &[Row], end: f64) -> Vec<Part> {
    let all: Vec<(&str, &Bar)> =
        rows.iter().flat_map(|row| row.bars.iter().map(|bar| (row.node.as_str(), bar))).collect();
    let mut path: Vec<Part> = Vec::new();
    let mut at = end;
    while at > CLOSE {
        let work = (all.iter())
            .filter(|(_, bar)| !bar.waits && bar.from < at - CLOSE)
            .max_by(|(_, a), (_, b)| a.to.min(at).total_cmp(&b.to.min(at)).then(b.from.total_cmp(&a.from)));
        let worked_until = work.map_or(0.0, |(_, bar)| bar.to.min(at));
        if worked_until < at - CLOSE {
            // The most particular of those who waited: the one that began last.
            let wait = (all.iter())
                .filter(|(_, bar)| bar.waits && bar.from < at - CLOSE && bar.to >= at - CLOSE)
                .max_by(|(_, a), (_, b)| a.from.total_cmp(&b.from));
            // Before it, somebody else's wait may have been the more particular one.
            let others = |from: f64| {
                let ended = all.iter().filter(|(_, b)| b.waits && b.from > from && b.to < at - CLOSE);
                ended.map(|(_, b)| b.to).fold(from, f64::max)
            };
            let (node, step, from) = match wait {
                Some((node, bar)) => (*node, bar.step.as_str(), others(bar.from).max(worked_until)),
                None => ("", "nothing that was written down", worked_until),
            };
            path.push(Part { node: node.into(), step: step.into(), from, to: at });
            at = from;
            continue;
        }
        let Some((node, bar)) = work else { break };
        path.push(Part { node: (*node).into(), step: bar.step.clone(), from: bar.from.max(0.0), to: at });
        at = bar.from;
    }
    path.reverse();
    path
}
