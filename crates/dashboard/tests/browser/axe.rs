//! axe-core in the page: what it finds that keeps people from using it. `scripts/browser.sh` fetches it; the page itself never does.

use crate::chromium::{Chromium, Page};
use serde_json::{Value, json};
use std::path::Path;

const FILE: &str = "../../target/axe/node_modules/axe-core/axe.min.js";

/// Only what is serious or critical, and where it is.
const FIND: &str = "axe.run().then((found) => ({
    rules: found.passes.length,
    grave: found.violations.filter((rule) => ['serious', 'critical'].includes(rule.impact))
        .map((rule) => [rule.id, ...rule.nodes.map((node) => node.target.join(' ') + ': ' + node.failureSummary)].join('\\n')),
}))";

pub(crate) struct Axe(String);

impl Axe {
    pub(crate) fn load() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        let script = std::fs::read_to_string(&path);
        Self(script.unwrap_or_else(|e| panic!("{}: {e}; scripts/browser.sh fetches it", path.display())))
    }

    pub(crate) fn find(&self, browser: &mut Chromium, page: &Page) -> Value {
        // What it is itself cannot be handed back.
        browser.run(page, &format!("{};0", self.0));
        browser.run(page, FIND)
    }

    /// `state`: how the page looks now.
    pub(crate) fn finds_nothing(&self, browser: &mut Chromium, page: &Page, state: &str) {
        let found = self.find(browser, page);
        assert_eq!(found["grave"], json!([]), "{state}: {}", told(&found));
        assert!(
            found["rules"].as_u64().is_some_and(|rules| rules > 15),
            "{state}: it has looked at little: {found}"
        );
    }
}

fn told(found: &Value) -> String {
    let lines: Vec<_> = found["grave"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    lines.join("\n\n")
}
