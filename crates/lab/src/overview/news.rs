//! What changed between two looks, a line each: for logs and pipes. Pure.

use super::{Mark, Overview, STAGES, draw};

pub fn news(before: &Overview, after: &Overview) -> Vec<String> {
    let mut news = vec![];
    let known = before.milestones.len().min(after.milestones.len());
    let begun_again = before.started != after.started;
    let reached = after.milestones.iter().skip(if begun_again { 0 } else { known });
    news.extend(reached.map(|(what, _)| match what.contains(" to ") {
        true => format!("done waiting for {what}"),
        false => what.clone(),
    }));
    for node in &after.status.nodes {
        let old = before.status.nodes.iter().find(|n| n.name == node.name);
        if old.is_none_or(|old| old.power() != node.power() || old.says != node.says) {
            news.push(format!("{}: {}", node.name, node.says));
        }
    }
    for progress in &after.progress {
        let old = before.progress.iter().find(|p| p.name == progress.name);
        for (n, (mark, stage)) in progress.marks.iter().zip(STAGES).enumerate() {
            let old = old.map_or(Mark::Pending, |old| old.marks[n]);
            match mark {
                _ if *mark == old => {}
                Mark::Done(_) => news.push(format!("{}: {stage} is there", progress.name)),
                Mark::Lost(_) => news.push(format!("{}: {stage} is gone", progress.name)),
                Mark::Left => news.push(format!("{}: {stage} has left", progress.name)),
                Mark::Never | Mark::Pending | Mark::Unknown => {}
            }
        }
    }
    let changes = after.etcd.iter().filter(|change| !before.etcd.contains(change));
    news.extend(changes.map(|c| format!("etcd: {} {}: {}", c.member, c.what, draw::count(c))));
    match (&before.cluster.error, &after.cluster.error) {
        (Some(_), None) => news.push("the API answers".into()),
        (None, Some(why)) => news.push(format!("the API does not answer: {why}")),
        _ => {}
    }
    for operator in &after.cluster.operators {
        let old = before.cluster.operators.iter().find(|o| o.name == operator.name);
        if old != Some(operator) {
            let says = if operator.ok { "done" } else { operator.says.as_str() };
            news.push(format!("operator {}: {says}", operator.name));
        }
    }
    if after.last_error != before.last_error
        && let Some(error) = &after.last_error
    {
        news.push(format!("{}: {} failed: {}", error.node, error.who, error.says));
    }
    news
}
