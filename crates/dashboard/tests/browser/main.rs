//! The page in a real browser, with a bring-up that a real lab of five machines left behind. `make browser` runs it: it needs Chromium.

#![expect(clippy::unwrap_used, reason = "tests")]

mod axe;
mod chromium;

use axe::Axe;
use chromium::{Chromium, Page, file_url};
use seedling_dashboard::inputs::Inputs;
use seedling_dashboard::story::{Story, state_at, story};
use seedling_dashboard::{Live, record, serve};
use seedling_lab::{LabSpec, Labs, Record, probe::BringUp};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn recorded() -> Inputs {
    serde_json::from_str(include_str!("../data/bring-up.json")).unwrap()
}

fn lines<T: Serialize>(items: &[T]) -> String {
    items.iter().map(|item| serde_json::to_string(item).unwrap() + "\n").collect()
}

/// A lab's directory as the bring-up left it; of the journals so many lines.
fn write_lab(labs: &Labs, inputs: &Inputs, most: usize) {
    let dir = labs.dir(&inputs.lab);
    let domain = serde_json::from_value(json!(inputs.domain)).unwrap();
    let spec =
        LabSpec::new(&inputs.lab, domain, inputs.inventory.clone(), dir.join("assets"), dir.join("release"))
            .unwrap();
    let put = |path: &Path, text: String| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let lab = Record { spec, image: dir.join("image"), boot_image: None, api: None };
    put(&dir.join("lab.json"), serde_json::to_string(&lab).unwrap());
    let stages = if most == usize::MAX { vec![("all".to_string(), 1.0)] } else { vec![] };
    let bring_up =
        BringUp { started_unix_millis: inputs.started, milestones: inputs.milestones.clone(), stages };
    put(&dir.join("bring-up.json"), serde_json::to_string(&bring_up).unwrap());
    put(&dir.join("helper-events.jsonl"), lines(&inputs.events));
    put(&dir.join("helper.log"), "the helper listens\n".into());
    for host in &inputs.inventory.hosts {
        let disk = dir.join("nodes").join(&host.name).join("upper/var/log");
        let journal = &inputs.journals[&host.name];
        put(&disk.join("openshift/journal.jsonl"), lines(&journal[..journal.len().min(most)]));
        put(
            &disk.join("machine-config-server/audit.log"),
            lines(inputs.configs.get(&host.name).map_or(&[], Vec::as_slice)),
        );
    }
}

fn text(browser: &mut Chromium, page: &Page, id: &str) -> String {
    browser.run(page, &format!("document.getElementById('{id}').textContent")).as_str().unwrap().into()
}

/// The script's lookup and Rust's are one: the keys of what differs. (Compared there: a number has one form in a script.)
fn same_states(browser: &mut Chromium, page: &Page, story: &Story) {
    for at in [0.0, 0.6, 4.9, 12.5, 26.0, 27.5, 33.3, 45.4, 60.0] {
        let want = serde_json::to_string(&state_at(story, at)).unwrap();
        let differ = format!(
            "((want) => {{
                const seen = seedling.stateAt(seedling.index.story, {at});
                const text = (value) => JSON.stringify(value, (name, inner) => name === 'key' ? undefined : inner);
                return Object.keys({{ ...want, ...seen }}).filter((key) => text(seen[key]) !== text(want[key]));
            }})({want})"
        );
        assert_eq!(browser.run(page, &differ), json!([]), "at {at}");
    }
    assert!(state_at(story, 60.0).len() > 300, "there is something to compare");
}

#[test]
#[ignore = "needs Chromium: make browser"]
fn a_lab_is_followed_as_it_grows() {
    let inputs = recorded();
    let state = tempfile::tempdir().unwrap();
    let labs = Labs { state: state.path().into(), cache: state.path().join("cache") };
    write_lab(&labs, &inputs, 20);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, Live::follow(labs.clone(), &inputs.lab, "test".into()), None));
        url
    });
    let mut browser = Chromium::start();
    let page = browser.open(&url, 1280, &[]);

    let machines =
        browser.run(&page, "[...document.querySelectorAll('#path .machine b')].map((b) => b.textContent)");
    assert_eq!(machines, json!(["bootstrap", "master-0", "master-1", "master-2", "worker-0"]));
    assert_eq!(text(&mut browser, &page, "status-text"), "growing");
    let stages = text(&mut browser, &page, "stages-count");
    assert!(!stages.starts_with("22 "), "{stages}");

    // The rest is written, and comes over the stream.
    write_lab(&labs, &inputs, usize::MAX);
    browser.until(&page, "document.getElementById('stages-count').textContent === '22 of 22 stages'");
    browser.until(
        &page,
        "document.getElementById('status-text').textContent === 'grown in 54.7 s; the API does not answer'",
    );
    assert_eq!(text(&mut browser, &page, "etcd-count"), "3 voters");
    browser.until(&page, "document.getElementById('log').textContent === 'the helper listens\\n'");
    Axe::load().finds_nothing(&mut browser, &page, "live, with a log");
    let without_api =
        Inputs { api: false, cluster: None, certificates: vec![], power: Default::default(), ..inputs };
    browser.until(&page, "seedling.index.machines.every((machine) => machine.power === 'off')");
    let power =
        without_api.inventory.hosts.iter().map(|host| (host.name.clone(), "off".to_string())).collect();
    same_states(&mut browser, &page, &story(&Inputs { power, ..without_api }));
    assert_eq!(browser.complaints(&url), Vec::<String>::new());
}

fn recorded_page(dir: &Path) -> (String, Story) {
    let (story, file) = (story(&recorded()), dir.join("bring-up.html"));
    fs::write(&file, record(&story, 0)).unwrap();
    (file_url(&file), story)
}

#[test]
#[ignore = "needs Chromium: make browser"]
fn a_recorded_page_replays_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let (url, story) = recorded_page(dir.path());
    let mut browser = Chromium::start();
    let page = browser.open(&url, 1280, &[("prefers-color-scheme", "dark")]);
    same_states(&mut browser, &page, &story);
    let count = |browser: &mut Chromium, at: f64| {
        browser.run(&page, &format!("seedling.player.seek({at})"));
        browser.until(&page, &format!("document.getElementById('clock').textContent === '{at:.1} s'"));
        text(browser, &page, "etcd-count")
    };
    assert_eq!(count(&mut browser, 10.0), "1 voter");
    assert_eq!(count(&mut browser, 40.0), "4 voters");
    let frames = browser.run(&page, PLAYS_AT_EIGHT);
    println!("frames of a replay at 8x, in milliseconds: {frames}");
    assert_eq!(text(&mut browser, &page, "clock"), "54.7 s");
    assert_eq!(text(&mut browser, &page, "etcd-count"), "3 voters");
    assert_eq!(text(&mut browser, &page, "stages-count"), "22 of 22 stages");
    assert!(frames["frames"].as_u64().is_some_and(|drawn| drawn > 10), "{frames}");
    let shift = browser.run(&page, SHIFTED);
    assert!(shift.as_f64().is_some_and(|shift| shift < 0.01), "{shift}");
    assert_eq!(browser.complaints(&url), Vec::<String>::new());
}

/// How much of the page has moved by itself since it was opened.
const SHIFTED: &str = r#"new Promise((done) => {
    let sum = 0;
    const observer = new PerformanceObserver((list) => list.getEntries().forEach((shift) => { sum += shift.value; }));
    observer.observe({ type: "layout-shift", buffered: true });
    // What was seen before comes with the next task; two frames are later than that.
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum), 0)));
})"#;

/// From the beginning to the end; how long each frame took.
const PLAYS_AT_EIGHT: &str = r#"new Promise((done) => {
    document.getElementById("speed").value = "8";
    seedling.player.seek(0);
    seedling.player.toggle();
    const took = [];
    let last = performance.now();
    requestAnimationFrame(function frame(now) {
        took.push(now - last);
        last = now;
        if (seedling.player.playing) return requestAnimationFrame(frame);
        took.sort((a, b) => a - b);
        done({ frames: took.length, median: took[took.length >> 1], p95: took[Math.floor(took.length * 0.95)], longest: took[took.length - 1] });
    });
})"#;

#[test]
#[ignore = "needs Chromium: make browser"]
fn keys_reach_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _) = recorded_page(dir.path());
    let mut browser = Chromium::start();
    let page = browser.open(&url, 1280, &[]);
    let focus = |browser: &mut Chromium| {
        browser.run(&page, "document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")
    };
    // By Tab to the grid: it is one stop, after the buttons of the head.
    for _ in 0..12 {
        browser.press(&page, "Tab");
        if focus(&mut browser).as_str().is_some_and(|label| label.starts_with("bootstrap, Power")) {
            break;
        }
    }
    for (key, want) in [
        ("ArrowDown", "master-0, Power"),
        ("ArrowRight", "master-0, Address"),
        ("End", "master-0, Ready"),
        ("ArrowRight", "master-0, Ready"),
        ("ArrowUp", "bootstrap, Ready"),
        ("ArrowLeft", "bootstrap, API"),
    ] {
        browser.press(&page, key);
        let label = focus(&mut browser);
        assert!(label.as_str().is_some_and(|label| label.starts_with(want)), "{key}: {label}");
    }
    let hidden = |browser: &mut Chromium, id: &str| {
        browser.run(&page, &format!("document.getElementById('{id}').hidden"))
    };
    browser.press(&page, "Enter");
    assert_eq!(
        (hidden(&mut browser, "detail"), text(&mut browser, &page, "detail-title")),
        (json!(false), "API server".to_string())
    );
    browser.press(&page, "Escape");
    assert_eq!(hidden(&mut browser, "detail"), json!(true));
    assert!(
        focus(&mut browser).as_str().is_some_and(|label| label.starts_with("bootstrap, API")),
        "the focus is where it was"
    );
    browser.press(&page, " ");
    browser.until(&page, "seedling.player.playing && seedling.player.t > 0.2");
    assert_eq!(hidden(&mut browser, "detail"), json!(true), "space plays, and presses nothing");
    browser.press(&page, " ");
    assert_eq!(browser.run(&page, "seedling.player.playing"), Value::Bool(false));
    browser.run(&page, "seedling.player.seek(0)");
    browser.press(&page, ".");
    browser.press(&page, ".");
    browser.until(&page, "document.getElementById('milestone').textContent.includes('the API to answer')");
    browser.press(&page, "?");
    assert_eq!(browser.run(&page, "document.getElementById('keys').open"), json!(true));
    assert_eq!(browser.complaints(&url), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: make browser"]
fn a_phone_scrolls_only_down_and_motion_can_be_reduced() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _) = recorded_page(dir.path());
    let mut browser = Chromium::start();
    let page = browser.open(&url, 360, &[("prefers-reduced-motion", "reduce")]);
    browser.run(&page, "seedling.player.seek(27.5)");
    browser.until(&page, "document.querySelectorAll('#path .cell[data-state=open]').length > 0");
    assert_eq!(browser.run(&page, "document.documentElement.scrollWidth <= innerWidth"), json!(true));
    let outside = "[...document.querySelectorAll('main button, main .cell')].filter((b) => b.getBoundingClientRect().right > innerWidth).length";
    assert_eq!(browser.run(&page, outside), json!(0));
    let moves = "[...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).animationName !== 'none').length";
    assert_eq!(browser.run(&page, moves), json!(0));
    assert_eq!(browser.complaints(&url), Vec::<String>::new());
}

/// What a person may come upon, one after the other: a script, and what is true when the page shows it.
const STATES: [(&str, &str, &str); 5] = [
    ("the beginning", "seedling.player.seek(0)", "document.getElementById('clock').textContent === '0.0 s'"),
    (
        "growing",
        "seedling.player.seek(27.5)",
        "document.querySelectorAll('#path .cell[data-state=open]').length > 0",
    ),
    ("grown", "seedling.player.seek(1e9)", "document.getElementById('clock').textContent === '54.7 s'"),
    ("details", "document.querySelector('#path .cell').click()", "!document.getElementById('detail').hidden"),
    ("keys", "document.getElementById('help').click()", "document.getElementById('keys').open"),
];

#[test]
#[ignore = "needs Chromium and axe-core: make browser"]
fn axe_finds_nothing_grave() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _) = recorded_page(dir.path());
    let (mut browser, axe) = (Chromium::start(), Axe::load());
    for width in [1280, 360] {
        for scheme in ["light", "dark"] {
            let page = browser.open(&url, width, &[("prefers-color-scheme", scheme)]);
            for (state, script, shown) in STATES {
                browser.run(&page, &format!("{script};0"));
                browser.until(&page, shown);
                axe.finds_nothing(&mut browser, &page, &format!("{state}, {scheme}, {width} wide"));
            }
        }
    }
    let page = browser.open(&url, 1280, &[]);
    browser.run(&page, "document.querySelector('main').append(new Image());0");
    let found = axe.find(&mut browser, &page);
    assert!(found["grave"].to_string().contains("image-alt"), "what it should find it finds: {found}");
}
