//! Manifests against those that openshift-install made from the same install-config.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, SEED, cases, data};
use seedling_assets::Target;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Every config that upstream accepted, with every manifest it made of it.
#[test]
fn same_objects_as_recorded() {
    let cases = cases();
    assert_eq!(cases.len(), 23);
    for case in &cases {
        let assets = Assets::of_case(case);
        assets.create(Target::Manifests).unwrap_or_else(|e| panic!("{case}: {e}"));
        for folder in ["manifests", "openshift"] {
            let mut recorded = BTreeSet::new();
            for entry in fs::read_dir(data(case).join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let name = format!("{folder}/{}", path.file_stem().unwrap().display());
                let want: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                same(&format!("{case}: {name}"), &assets.yaml(&name), &want);
                recorded.insert(name);
            }
            if case == "arbiter" && folder == "openshift" {
                // Upstream takes the arbiter's files for the user's and loses its own: a bug of its.
                let lost = [
                    "99_feature-gate",
                    "99_kubeadmin-password-secret",
                    "99_osimagestream",
                    "openshift-install-manifests",
                ];
                recorded.extend(lost.map(|name| format!("openshift/{name}.yaml")));
            }
            let made: BTreeSet<_> =
                assets.tree().into_iter().filter(|path| path.starts_with(folder)).collect();
            assert_eq!(made, recorded, "{case}");
        }
    }
}

/// Equal, but for what is new each time: IDs, keys, dates. Folding of long YAML lines does not count either.
fn same(at: &str, got: &Value, want: &Value) {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => {
            assert_eq!(got.keys().collect::<BTreeSet<_>>(), want.keys().collect::<BTreeSet<_>>(), "{at}");
            want.iter().for_each(|(key, want)| same(&format!("{at}/{key}"), &got[key], want));
        }
        (Value::Array(got), Value::Array(want)) => {
            assert_eq!(got.len(), want.len(), "{at}");
            got.iter().zip(want).for_each(|(got, want)| same(at, got, want));
        }
        (Value::String(got), Value::String(want)) if at.ends_with("/install-config") => {
            let parse = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
            same(at.trim_end_matches("/install-config"), &parse(got), &parse(want));
        }
        (Value::String(got), Value::String(want)) => {
            const NEW: [&str; 6] = [
                "clusterID",
                "infrastructureName",
                "certificate-not-after",
                "certificate-not-before",
                "externalMACAddress",
                "provisioningMACAddress",
            ];
            let fresh = want.starts_with('<') || NEW.iter().any(|key| at.ends_with(key));
            // Upstream's cluster-config shows everybody the fencing passwords.
            let hidden = at.contains("/fencing/credentials") && got.is_empty();
            let infra = |text: &str| {
                text.split('-')
                    .map(|part| if part.len() == 5 { "*" } else { part })
                    .collect::<Vec<_>>()
                    .join("-")
            };
            let right = if fresh { !got.is_empty() } else { hidden || infra(got) == infra(want) };
            assert!(right, "{at}: {got:?} instead of {want:?}");
        }
        _ => assert_eq!(got, want, "{at}"),
    }
}

#[test]
fn metadata_as_recorded() {
    for case in cases() {
        let assets = Assets::of_case(&case);
        let in_place = case == "sno-bip";
        let target = if in_place { Target::SingleNodeIgnitionConfig } else { Target::IgnitionConfigs };
        assets.create(target).unwrap();
        let [got, want]: [Value; 2] = [
            serde_json::from_str(&assets.read("metadata.json")).unwrap(),
            serde_json::from_str(&fs::read_to_string(data(&case).join("metadata.json")).unwrap()).unwrap(),
        ];
        for (key, want) in want.as_object().unwrap() {
            assert!(["clusterID", "infraID"].contains(&key.as_str()) || got[key] == *want, "{case}: {key}");
        }
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&got), keys(&want), "{case}");
    }
}

#[test]
fn normalised_install_config() {
    for case in cases() {
        let assets = Assets::of_case(&case);
        assets.create(Target::InstallConfig).unwrap();
        let want = fs::read_to_string(data(&case).join("install-config.normalized.yaml")).unwrap();
        let want: Value = serde_saphyr::from_str(&want).unwrap();
        same(&case, &assets.yaml("install-config.yaml"), &want);
    }
}

#[test]
fn what_is_said_and_left_on_disk() {
    let assets = Assets::of_case(SEED);
    let outcome = assets.create(Target::Manifests).unwrap();
    let dir = assets.dir.path().display();
    let said: Vec<_> = outcome.messages.iter().map(|m| m.text.clone()).collect();
    assert_eq!(said, [
        "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings".to_string(),
        "Successfully populated MCS CA cert information: root-ca 2036-11-12T12:00:00Z 2026-11-15T12:00:00Z".into(),
        "Successfully populated MCS TLS cert information: root-ca 2036-11-12T12:00:00Z 2026-11-15T12:00:00Z".into(),
        "Consuming Install Config from target directory".into(),
        format!("Manifests created in: {dir}, {dir}/manifests and {dir}/openshift"),
    ]);
    assert!(!assets.path("install-config.yaml").exists());
    assert_eq!(assets.read("000_capi-namespace.yaml"), "");
    let mode = |name: &str| fs::metadata(assets.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(".openshift_install_state.json"), 0o600);
    assert_eq!(mode("manifests/machine-config-server-ca-secret.yaml"), 0o600);
    assert_eq!(mode("manifests/cluster-dns-02-config.yml"), 0o640);
    assert_eq!(mode("manifests"), 0o750);
    // The command that the instructions give people.
    let edited = assets.read("manifests/cluster-scheduler-02-config.yml").replace("true", "false");
    assert!(edited.contains("  mastersSchedulable: false\n"), "{edited}");
}
