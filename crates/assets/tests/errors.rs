//! Bad install-configs: upstream's words and exit code, nothing written.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, HOSTS, SEED, data};
use seedling_assets::{CreateError, Target};
use serde_json::Value;
use std::fs;

/// What openshift-install said, for every field that Seedling acts on. One difference is on purpose: a pull secret is not
/// repeated in a log.
#[test]
fn recorded_answers() {
    let cases = fs::read_to_string(data("install-config-errors.jsonl")).unwrap();
    let mut failed = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let assets = Assets::new(case["install_config"].as_str().unwrap());
        let answer = assets.create(Target::Manifests);
        let got = answer.err().map(|e| (i64::from(e.exit_code()), e.to_string()));
        let exit = case["exit"].as_i64().unwrap();
        if exit == 0 {
            if let Some(got) = got {
                failed.push(format!("{}: refused: {}", case["case"], got.1));
            }
            continue;
        }
        let Some((code, text)) = got else {
            failed.push(format!("{}: accepted", case["case"]));
            continue;
        };
        assert_eq!(
            (code, assets.tree()),
            (exit, vec!["install-config.yaml".to_string()]),
            "{}",
            case["case"]
        );
        for want in
            case["stderr"].as_str().unwrap().lines().filter_map(|line| line.strip_prefix("level=error msg="))
        {
            let want = redacted(want);
            if !text.lines().any(|got| got == want) {
                failed.push(format!(
                    "{}:\n  want {want}\n  got  {}",
                    case["case"],
                    text.replace('\n', "\n       ")
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
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

fn problems(assets: &Assets) -> Vec<(String, Option<u64>, bool)> {
    let Err(CreateError::Config { problems, .. }) = assets.create(Target::Manifests) else {
        panic!("accepted")
    };
    problems.into_iter().map(|p| (p.path, p.line, p.hint.is_some())).collect()
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
        ("fipps", 11),
        ("controlPlane.replicas", 10),
        ("baseDomain", 2),
        ("networking.serviceNetwork[0]", 20),
        ("networking.clusterNetwork[0].hostPrefix", 17),
    ];
    let want: Vec<_> = want.map(|(path, line)| (path.to_string(), Some(line), true)).into();
    assert_eq!(found, want);
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
