//! A headless Chromium, driven over its debugging pipe: JSON messages on two file descriptors, each ended by a zero byte.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Chromium {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    number: u64,
    /// What the browser told unasked.
    pub(crate) events: Vec<Value>,
    _dir: TempDir,
}

/// A tab.
pub(crate) struct Page {
    session: String,
}

impl Chromium {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (commands, answers) = (dir.path().join("commands"), dir.path().join("answers"));
        let made = Command::new("mkfifo").args([&commands, &answers]).status().unwrap();
        assert!(made.success());
        // It runs as root in a container of its own, without a graphics card.
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --remote-debugging-pipe --user-data-dir=\"$1\" 3<\"$2\" 4>\"$3\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(dir.path().join("profile")).args([&commands, &answers]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|e| panic!("chromium: {e}; scripts/browser.sh installs it"));
        let commands = File::options().write(true).open(&commands).unwrap();
        let answers = BufReader::new(File::open(&answers).unwrap());
        let (tell, messages) = channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, commands, messages, number: 0, events: Vec::new(), _dir: dir }
    }

    pub(crate) fn open(&mut self, url: &str, width: u32, features: &[(&str, &str)]) -> Page {
        let target =
            self.call("", "Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = self.call("", "Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let page = Page { session: attached["sessionId"].as_str().unwrap().into() };
        for domain in ["Runtime", "Log", "Network", "Page"] {
            self.call(&page.session, &format!("{domain}.enable"), json!({}));
        }
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call(&page.session, "Emulation.setDeviceMetricsOverride", metrics);
        let features: Vec<_> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.call(&page.session, "Emulation.setEmulatedMedia", json!({ "features": features }));
        self.call(&page.session, "Page.navigate", json!({ "url": url }));
        self.until(&page, "globalThis.seedling?.index.machines.length > 0");
        page
    }

    /// Waits in the page until the expression is true.
    pub(crate) fn until(&mut self, page: &Page, expression: &str) {
        let wait = format!(
            "new Promise((met) => {{ const look = () => ({expression}) ? met(true) : setTimeout(look, 20); look(); }})"
        );
        assert_eq!(self.run(page, &wait), json!(true), "{expression}");
    }

    pub(crate) fn run(&mut self, page: &Page, script: &str) -> Value {
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let ran = self.call(&page.session, "Runtime.evaluate", params);
        assert!(ran.get("exceptionDetails").is_none(), "{script}: {ran}");
        ran["result"]["value"].clone()
    }

    /// As a person presses it.
    pub(crate) fn press(&mut self, page: &Page, key: &str) {
        let text = match key {
            "Enter" => Some("\r"),
            one if one.chars().count() == 1 => Some(one),
            _ => None,
        };
        for kind in ["keyDown", "keyUp"] {
            let text = text.filter(|_| kind == "keyDown");
            let code = match key {
                "Enter" => 13,
                "Tab" => 9,
                "Escape" => 27,
                " " => 32,
                "ArrowLeft" => 37,
                "ArrowUp" => 38,
                "ArrowRight" => 39,
                "ArrowDown" => 40,
                _ => 0,
            };
            let mut params = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if let Some(text) = text {
                params["text"] = json!(text);
            }
            self.call(&page.session, "Input.dispatchKeyEvent", params);
        }
    }

    /// What went wrong on the page, and what it asked others for.
    pub(crate) fn complaints(&self, own: &str) -> Vec<String> {
        let told = self.events.iter().filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params.to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" || params["type"] == "warning" => {
                    Some(params.to_string())
                }
                "Log.entryAdded" => Some(params.to_string()),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str()?;
                    (!url.starts_with(own) && !url.starts_with("data:") && url != "about:blank")
                        .then(|| format!("asked {url}"))
                }
                _ => None,
            }
        });
        told.collect()
    }

    fn call(&mut self, session: &str, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !session.is_empty() {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let told = self.messages.recv_timeout(ANSWER_WITHIN).unwrap_or_else(|e| panic!("{method}: {e}"));
            if told["id"] == json!(self.number) {
                assert!(told.get("error").is_none(), "{method}: {told}");
                return told["result"].clone();
            }
            self.events.push(told);
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}
