//! Any text is answered, never with a panic; any valid config has a normal form, which is its own normal form.
#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use seedling_assets::config::problem::report;
use seedling_assets::config::{Context, FoundAt, InstallConfig};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const CONTEXT: Context = Context { stream: "rhel-10", lenient: false, skip_host_crypto: false };

fn answered(text: &str) {
    match InstallConfig::parse(text, &CONTEXT) {
        Ok(config) => normal(&config),
        Err(problems) => {
            assert!(problems.iter().any(|p| p.step != FoundAt::Warning), "refused without a reason");
            assert!(!report(&problems).is_empty());
        }
    }
}

/// The normal form says the same, and again.
fn normal(config: &InstallConfig) {
    let written = serde_json::to_string(&config.merged).unwrap();
    let again = InstallConfig::parse(&written, &CONTEXT).unwrap_or_else(|e| panic!("{written}\n{e:#?}"));
    assert_eq!(again.merged, config.merged);
}

/// A recorded config, to be damaged.
fn recorded() -> impl Strategy<Value = String> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let dirs = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path().join("install-config.yaml"));
    select(
        dirs.filter(|path| path.exists()).map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>(),
    )
}

/// Names that YAML would rather take for something else are names too.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?",
        select(vec!["y", "no", "on", "true", "null", "017", "1e3", "0x10", "1-2", "12"])
            .prop_map(String::from),
    ]
}

/// Machines, pods and services: IPv4, IPv6, or both.
fn networking() -> impl Strategy<Value = Value> {
    let v4 = json!({"machineNetwork": [{"cidr": "192.168.7.0/24"}], "serviceNetwork": ["172.30.0.0/16"],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]});
    let v6 = json!({"machineNetwork": [{"cidr": "fd00::/64"}], "serviceNetwork": ["fd02::/112"],
        "clusterNetwork": [{"cidr": "fd01::/48", "hostPrefix": 64}]});
    let both = json!({"machineNetwork": [{"cidr": "192.168.7.0/24"}, {"cidr": "fd00::/64"}],
        "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}]});
    let old = json!({"clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}], "type": "ovnkubernetes",
        "machineCIDR": "192.168.7.0/24", "serviceCIDR": "172.30.0.0/16"});
    select(vec![v4, v6, both, old])
}

/// Fields that may be there or not.
fn optional() -> impl Strategy<Value = Vec<(String, Value)>> {
    let all = [
        (
            "proxy",
            json!({"httpProxy": "http://user:pw@proxy.example.com:3128", "noProxy": ".a.com,10.0.0.0/8,::1"}),
        ),
        (
            "imageDigestSources",
            json!([{"source": "quay.io/a/b", "mirrors": ["r.example.com:5000/x"], "sourcePolicy": "NeverContactSource"}]),
        ),
        (
            "capabilities",
            json!({"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Ingress", "MachineAPI", "baremetal"]}),
        ),
        ("publish", json!("External")),
        ("cpuPartitioningMode", json!("AllNodes")),
        ("featureSet", json!("TechPreviewNoUpgrade")),
        ("arbiter", json!({"replicas": 1, "hyperthreading": "Disabled"})),
        ("fips", json!(false)),
        ("kind", json!("InstallConfig")),
        ("compute", json!([{"name": "worker", "replicas": 0}])),
    ];
    let all: Vec<_> = all.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    proptest::sample::subsequence(all.clone(), 0..=all.len())
}

fn platform() -> impl Strategy<Value = (Value, bool)> {
    let hosts: Vec<_> = (0..3)
        .map(|i| json!({"name": format!("m{i}"), "role": "master", "bootMACAddress": format!("52:54:00:00:00:0{i}"),
            "bmc": {"address": format!("ipmi://192.0.2.{i}"), "username": "u", "password": "p"}}))
        .chain([json!({"name": "a0", "role": "arbiter", "bootMACAddress": "52:54:00:00:00:0a"})])
        .collect();
    let baremetal = |network: &str| {
        json!({"baremetal": {"hosts": hosts, "provisioningNetwork": network,
        "apiVIPs": ["192.168.7.5"], "ingressVIPs": ["192.168.7.6"]}})
    };
    let all = ["Managed", "Unmanaged", "Disabled"].map(|network| (baremetal(network), true));
    select([&all[..], &[(json!({"none": {}}), false)]].concat())
}

fn valid() -> impl Strategy<Value = Value> {
    (name(), networking(), optional(), platform(), 3..5_i64).prop_map(|(name, net, more, (platform, metal), masters)| {
        let mut config = json!({
            "apiVersion": "v1", "metadata": {"name": name}, "baseDomain": "example.com.", "networking": net, "platform": platform,
            "controlPlane": {"replicas": masters}, "pullSecret": "{\"auths\":{\"r\":{\"auth\":\"eA==\"}}}",
        });
        config.as_object_mut().unwrap().extend(more);
        if metal {
            // Hosts and addresses fit three masters on IPv4.
            config["controlPlane"] = json!({"replicas": 3});
            config["compute"] = json!([{"name": "worker", "replicas": 0}]);
            config["networking"] = json!({"machineNetwork": [{"cidr": "192.168.7.0/24"}]});
        }
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300)) {
        answered(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_yaml_like_text_is_answered(text in "([a-zA-Z]{1,8}: ?|- |  |\n|[\\[\\]{}\"'&*!|>%@`,?#:-]|[0-9.]{1,5}|\\\\|é){0,60}") {
        answered(&text);
    }

    #[test]
    fn any_damage_is_answered(text in recorded(), cuts in vec((any::<prop::sample::Index>(), 0..20_usize, ".{0,6}"), 1..4)) {
        let mut text = text;
        for (at, length, put) in cuts {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len() + 1);
            let end = chars.len().min(at + length);
            chars.splice(at..end, put.chars());
            text = chars.into_iter().collect();
        }
        answered(&text);
    }

    #[test]
    fn a_valid_config_is_its_own_normal_form(config in valid()) {
        let parsed = InstallConfig::parse(&config.to_string(), &CONTEXT);
        let parsed = parsed.unwrap_or_else(|e| panic!("{config:#}\n{}", report(&e).join("\n")));
        normal(&parsed);
    }
}

/// As `create install-config` writes it: what is text stays text.
#[test]
fn what_is_written_is_read_again() {
    for name in ["y", "no", "on", "true", "null", "017", "1e3", "0x10", "12", "0b1", "1-2"] {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "apiVersion: v1\nbaseDomain: example.com\nmetadata: {{name: '{name}'}}\nplatform: {{none: {{}}}}\n\
             pullSecret: '{{\"auths\":{{\"r\":{{\"auth\":\"eA==\"}}}}}}'\nsshKey: ''\n"
        );
        fs::write(dir.path().join("install-config.yaml"), text).unwrap();
        let options = seedling_assets::Options { release: dir.path().into(), ..Default::default() };
        seedling_assets::create(seedling_assets::Target::InstallConfig, dir.path(), &options).unwrap();
        let written = fs::read_to_string(dir.path().join("install-config.yaml")).unwrap();
        let again = InstallConfig::parse(&written, &CONTEXT).unwrap_or_else(|e| panic!("{written}\n{e:#?}"));
        assert_eq!(again.name, name, "{written}");
    }
}
