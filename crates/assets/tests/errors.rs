//! Bad install-configs: upstream's words and exit code, nothing written.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, HOSTS, SEED, data};
use seedling_assets::config::problem::{report, warnings};
use seedling_assets::config::{Context, InstallConfig};
use seedling_assets::{CreateError, Target};
use serde_json::Value;
use std::fs;

/// What openshift-install said of each recorded config. Differences on purpose are in docs/differences.md; here only one shows: a
/// pull secret is not repeated in a log.
#[test]
fn recorded_answers() {
    let cases = fs::read_to_string(data("install-config-errors.jsonl")).unwrap();
    let mut failed = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["install_config"].as_str().unwrap();
        if let Err(why) = compare(&case, text) {
            failed.push(format!("{}: {why}", case["case"].as_str().unwrap()));
        }
    }
    assert!(failed.is_empty(), "{} of {}\n{}", failed.len(), cases.lines().count(), failed.join("\n"));
}

fn compare(case: &Value, text: &str) -> Result<(), String> {
    let stderr = case["stderr"].as_str().unwrap();
    let told = |level: &str| {
        let start = format!("level={level} msg=");
        stderr.lines().filter_map(move |line| line.strip_prefix(&start).map(redacted)).collect::<Vec<_>>()
    };
    let parsed = InstallConfig::parse(text, &Context::new("rhel-10"));
    match (&parsed, case["exit"].as_i64().unwrap()) {
        (Ok(config), 0) => same_warnings(&told("warning"), &config.warnings),
        // A valid config; what is missing only one target needs.
        (Ok(config), 1) => {
            let why = config.in_place_disk().unwrap_err();
            told("fatal")[0].ends_with(&why).then_some(()).ok_or(why)
        }
        (Ok(_), _) => Err("accepted".into()),
        (Err(found), 0) => Err(format!("refused: {}", report(found).join("\n       "))),
        (Err(found), exit) => {
            same_warnings(&told("warning"), &warnings(found))?;
            let target = match case["target"].as_str().unwrap() {
                "manifests" => Target::Manifests,
                _ => Target::IgnitionConfigs,
            };
            let assets = Assets::new(text);
            let error = assets.create(target).unwrap_err();
            assert_eq!(
                (i64::from(error.exit_code()), assets.tree()),
                (exit, vec!["install-config.yaml".to_string()])
            );
            let (want, got) = (told("error"), error.to_string());
            let got: Vec<_> = got.lines().collect();
            let first = &got[..want.len().min(got.len())];
            (first == want).then_some(()).ok_or(format!("\n  want {want:?}\n  got  {got:?}"))
        }
    }
}

/// Those that are about the config itself.
fn same_warnings(want: &[String], got: &[String]) -> Result<(), String> {
    const ELSEWHERE: &[&str] =
        &["Found override", "Making control-plane", "Could not determine release", "Discarding the"];
    let want: Vec<_> = want.iter().filter(|w| !ELSEWHERE.iter().any(|start| w.starts_with(start))).collect();
    (want.iter().copied().eq(got)).then_some(()).ok_or(format!("warnings: want {want:?}, got {got:?}"))
}

/// Accepted configs and what they are with all defaults. Two MAC addresses are drawn by lot upstream.
#[test]
fn recorded_normal_forms() {
    let mut count = 0;
    for case in
        fs::read_dir(data("")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        let read = |file: &str| fs::read_to_string(case.join(file)).unwrap();
        let config = InstallConfig::parse(&read("install-config.yaml"), &Context::new("rhel-10"));
        let config = config.unwrap_or_else(|e| panic!("{}: {e:?}", case.display()));
        let mut want: Value = serde_saphyr::from_str(&read("install-config.normalized.yaml")).unwrap();
        let got = serde_json::to_value(&config.merged).unwrap();
        if let Some(baremetal) = want.pointer_mut("/platform/baremetal") {
            for mac in ["externalMACAddress", "provisioningMACAddress"] {
                baremetal[mac] = got["platform"]["baremetal"][mac].clone();
            }
        }
        assert_eq!(got, want, "{}", case.display());
        let order = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(order(&got), order(&want), "{}", case.display());
        count += 1;
    }
    assert_eq!(count, 23);
}

fn redacted(line: &str) -> String {
    const START: &str = "pullSecret: Invalid value: \"";
    let Some(at) = line.find(START).map(|at| at + START.len()) else { return line.to_string() };
    let mut escaped = false;
    let end = line[at..].char_indices().find(|(_, c)| {
        let end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        end
    });
    match end {
        Some((0, _)) | None => line.to_string(),
        Some((end, _)) => format!("{}(redacted){}", &line[..at - 1], &line[at + end + 1..]),
    }
}

/// Field, place, and whether there is a hint.
type Told = (String, Option<(u64, u64)>, bool);

fn problems(assets: &Assets) -> Vec<Told> {
    let Err(CreateError::Config { problems, .. }) = assets.create(Target::Manifests) else {
        panic!("accepted")
    };
    problems.into_iter().map(|p| (p.path, p.at.map(|at| (at.line, at.column)), p.hint.is_some())).collect()
}

#[test]
fn all_at_once_with_lines_and_hints() {
    let good = fs::read_to_string(data(SEED).join("install-config.yaml")).unwrap();
    let bad = good
        .replace("baseDomain: alchemy.com", "baseDomain: bad..domain")
        .replace("  replicas: 3", "  replicas: none")
        .replace("hostPrefix: 23", "hostPrefix: 10")
        .replace("fips: false", "fipps: false")
        .replace("172.30.0.0/16", "172.30.0.1/16");
    let found = problems(&Assets::new(&bad));
    let want = [
        ("controlPlane.replicas", (10, 3)),
        ("fipps", (11, 1)),
        ("baseDomain", (2, 1)),
        ("networking.serviceNetwork[0]", (20, 5)),
        ("networking.clusterNetwork[0].hostPrefix", (17, 5)),
    ];
    let want: Vec<_> = want.map(|(path, at)| (path.to_string(), Some(at), true)).into();
    assert_eq!(found, want);
}

/// What comes after upstream's line.
#[test]
fn places_are_shown() {
    let text = "apiVersion: v1\nbaseDomain: example.com\nmetadata:\n  naem: ocp4\nnetworking:\n  serviceNetwork:\n  - 172.30.0.9/16\n\
                platform: {none: {}}\npullSecret: '{\"auths\":{\"hunter2\":{}}}'\n";
    let found = InstallConfig::parse(text, &Context::new("rhel-10")).unwrap_err();
    let want = r#"
failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "naem"
install-config.yaml:4:3: metadata.naem
 4 |   naem: ocp4
   |   ^^^^
   = hint: did you mean "name"?
install-config.yaml:7:5: networking.serviceNetwork[0]: Invalid value: "172.30.0.9/16": invalid network address. got 172.30.0.9/16, expecting 172.30.0.0/16
 7 |   - 172.30.0.9/16
   |     ^
   = hint: write 172.30.0.0/16
install-config.yaml:9:1: pullSecret: Invalid value: (redacted): "hunter2" requires either auth or credsStore
 9 | pullSecret…
   | ^^^^^^^^^^
   = hint: one line of JSON, e.g. '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'
"#;
    assert_eq!(report(&found).join("\n"), want.trim());
}

/// With a program that calls it unknown fields are passed over, as upstream does.
#[test]
fn unknown_fields_for_other_programs() {
    let good = fs::read_to_string(data(SEED).join("install-config.yaml")).unwrap();
    let context = Context { lenient: true, ..Context::new("rhel-10") };
    let config = InstallConfig::parse(&format!("{good}wibble: 1\n"), &context).unwrap();
    assert!(config.warnings[0].ends_with("json: unknown field \"wibble\""), "{:?}", config.warnings);
    assert!(config.warnings[1].starts_with("Attempting to unmarshal while ignoring unknown keys"));
}

#[test]
fn secrets_are_not_repeated() {
    let good = fs::read_to_string(data(SEED).join("install-config.yaml")).unwrap();
    let assets = Assets::new(&good.replace("\"auth\":\"dTpw\"", "\"wrong\":\"hunter2\""));
    let text = assets.create(Target::Manifests).unwrap_err().to_string();
    let want =
        "pullSecret: Invalid value: (redacted): \"registry.example.com\" requires either auth or credsStore";
    assert!(text.contains(want) && !text.contains("hunter2"), "{text}");
}

#[test]
fn the_inventory_is_checked_too() {
    let assets = Assets::of_case(SEED);
    assets.write(
        "hosts.yaml",
        &HOSTS.replace("role: master, mac: '52:54:00:f8", "role: worker, mac: '52:54:00:f8"),
    );
    let error = assets.create(Target::IgnitionConfigs).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    let want = "hosts: has 2 masters, but controlPlane.replicas of install-config.yaml is 3";
    assert!(error.to_string().contains(want), "{error}");
    assets.write("hosts.yaml", &HOSTS.replace("role: bootstrap", "role: worker"));
    assert!(
        assets.create(Target::IgnitionConfigs).unwrap_err().to_string().contains("has no bootstrap host")
    );
    assets.write("hosts.yaml", &HOSTS.replace("100.13", "100.12"));
    assert!(
        assets.create(Target::IgnitionConfigs).unwrap_err().to_string().contains("already used by hosts[2]")
    );
    assert_eq!(assets.tree(), ["hosts.yaml", "install-config.yaml"]);
}

#[test]
fn nothing_to_start_from() {
    let assets = Assets::of_case(SEED);
    fs::remove_file(assets.path("install-config.yaml")).unwrap();
    let error = assets.create(Target::Manifests).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("neither an install-config.yaml nor"), "{error}");
}
