//! In which order the manifests are worked: stages after one another, groups of a stage side by side, tasks of a group in series.

use super::payload::Manifest;
use seedling_api::config::Update;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// No version was ever complete: everything at once, run levels do not order it.
    Initializing,
    /// Another version was complete: run level by run level, components of a level side by side.
    Updating,
    /// This version was complete: everything again, narrowly.
    Reconciling,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub workers: usize,
    /// Indices into the manifests.
    pub groups: Vec<Vec<usize>>,
}

const UPDATING_WORKERS: usize = 16;
pub(super) const RECONCILING_WORKERS: usize = 2;

pub(super) fn plan(manifests: &[&Manifest], mode: Mode) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut last: Option<usize> = None;
    for (index, manifest) in manifests.iter().enumerate() {
        let previous = last.map(|i| manifests[i]);
        last = Some(index);
        let barrier = manifest.is_job() || previous.is_some_and(Manifest::is_job);
        let level = |m: &Manifest| m.group.as_ref().map(|g| g.level);
        let next_level = mode == Mode::Updating && previous.is_some_and(|p| level(p) != level(manifest));
        if stages.is_empty() || barrier || next_level {
            stages.push(Stage { workers: 0, groups: vec![vec![index]] });
            continue;
        }
        // A wait that nobody's manifests wait for, unless the order of an update asks for it.
        let alone = mode == Mode::Initializing
            && (manifest.is_cluster_operator() || previous.is_some_and(Manifest::is_cluster_operator));
        let same_group = previous.is_some_and(|p| p.group.is_some() && p.group == manifest.group);
        if let Some(stage) = stages.last_mut() {
            match stage.groups.last_mut() {
                Some(group) if same_group && !alone => group.push(index),
                _ => stage.groups.push(vec![index]),
            }
        }
    }
    for stage in &mut stages {
        stage.workers = match mode {
            Mode::Initializing => stage.groups.len(),
            Mode::Updating => UPDATING_WORKERS,
            Mode::Reconciling => RECONCILING_WORKERS,
        };
    }
    stages
}

/// What is to be done, from ClusterVersion's history.
pub(super) fn mode(history: &[Update], version: &str, image: &str) -> Mode {
    match history.first() {
        Some(entry) if entry.is_complete() && entry.version == version && entry.image == image => {
            Mode::Reconciling
        }
        _ if history.iter().any(Update::is_complete) => Mode::Updating,
        _ => Mode::Initializing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::payload::tests::manifest;
    use super::*;

    fn payload() -> Vec<Manifest> {
        let one = |file: &str, kind: &str| manifest(file, &format!("{kind}\nmetadata: {{name: x}}\n"));
        let ns = "apiVersion: v1\nkind: Namespace";
        let operator = "apiVersion: config.openshift.io/v1\nkind: ClusterOperator";
        vec![
            one("0000_00_cvo_1.yaml", ns),
            one("0000_10_api_1.yaml", ns),
            one("0000_10_api_2.yaml", ns),
            one("0000_10_config_1.yaml", ns),
            one("0000_50_dns_1.yaml", ns),
            one("0000_50_dns_2.yaml", operator),
            one("0000_50_dns_3.yaml", ns),
        ]
    }

    fn groups(mode: Mode, manifests: &[Manifest]) -> Vec<(usize, Vec<Vec<usize>>)> {
        plan(&manifests.iter().collect::<Vec<_>>(), mode).into_iter().map(|s| (s.workers, s.groups)).collect()
    }

    #[test]
    fn initializing_runs_every_group_at_once_and_no_manifest_waits_for_an_operator() {
        let expected = vec![vec![0], vec![1, 2], vec![3], vec![4], vec![5], vec![6]];
        assert_eq!(groups(Mode::Initializing, &payload()), [(6, expected)]);
    }

    #[test]
    fn updating_goes_level_by_level() {
        let expected = [(16, vec![vec![0]]), (16, vec![vec![1, 2], vec![3]]), (16, vec![vec![4, 5, 6]])];
        assert_eq!(groups(Mode::Updating, &payload()), expected);
    }

    #[test]
    fn reconciling_is_narrow() {
        let expected = vec![vec![0], vec![1, 2], vec![3], vec![4, 5, 6]];
        assert_eq!(groups(Mode::Reconciling, &payload()), [(2, expected)]);
    }

    #[test]
    fn a_job_is_a_barrier() {
        let mut payload = payload();
        payload[2] = manifest("0000_10_api_2.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n");
        let stages = groups(Mode::Initializing, &payload);
        let stages: Vec<_> = stages.into_iter().map(|(_, groups)| groups).collect();
        assert_eq!(stages, [vec![vec![0], vec![1]], vec![vec![2]], vec![vec![3], vec![4], vec![5], vec![6]]]);
    }

    #[test]
    fn the_history_says_the_mode() {
        let entry = |state: &str, version: &str| Update {
            state: state.into(),
            version: version.into(),
            image: "i".into(),
            ..Update::default()
        };
        assert_eq!(mode(&[], "1", "i"), Mode::Initializing);
        assert_eq!(mode(&[entry("Partial", "1")], "1", "i"), Mode::Initializing);
        assert_eq!(mode(&[entry("Completed", "1")], "1", "i"), Mode::Reconciling);
        assert_eq!(mode(&[entry("Completed", "1")], "2", "i"), Mode::Updating);
        assert_eq!(mode(&[entry("Partial", "2"), entry("Completed", "1")], "2", "i"), Mode::Updating);
    }
}
