//! The page: three files, part of the program. As one file with a story inside it replays without any server.

use crate::describe::descriptions;
use crate::story::Story;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) const HTML: &str = include_str!("../page/index.html");
pub(crate) const STYLE: &str = include_str!("../page/style.css");
/// One script, in the order of what needs what.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("../page/state.js"),
    include_str!("../page/dom.js"),
    include_str!("../page/path.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/lists.js"),
    include_str!("../page/detail.js"),
    include_str!("../page/app.js"),
);

/// Nothing from elsewhere, nothing inline, in nobody's frame.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE_TAG: &str = r#"<link rel="stylesheet" href="style.css">"#;
const SCRIPT_TAG: &str = r#"<script type="module" src="app.js"></script>"#;

/// The first message of a stream. `now` in milliseconds since 1970: the page's clock may be another.
pub(crate) fn snapshot(story: &Story, now: i64) -> Value {
    json!({ "now": now, "descriptions": descriptions(), "story": story })
}

/// The page as one file that needs nothing: style, script and story inside, and a policy that allows exactly these.
pub fn record(story: &Story, now: i64) -> String {
    // A `<` in a story must not end the element it is in.
    let data = snapshot(story, now).to_string().replace('<', "\\u003c");
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let head =
        format!(r#"<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style>"#);
    let end = format!(
        r#"<script type="application/json" id="recorded">{data}</script><script type="module">{SCRIPT}</script>"#
    );
    HTML.replacen(STYLE_TAG, &head, 1).replacen(SCRIPT_TAG, &end, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::{Moment, Part, Source, Tone};

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for text in [HTML, STYLE, SCRIPT] {
            for foreign in ["http://", "https://", "//cdn", "@import", "url("] {
                let found = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!found.contains(foreign), "{foreign}");
            }
        }
        for inline in ["style=", "onclick=", "<style", "innerHTML"] {
            assert!(!HTML.contains(inline) && !SCRIPT.contains(inline), "{inline}");
        }
    }

    #[test]
    fn a_recorded_page_holds_what_it_needs_and_no_more() {
        let text = "</script><script>alert(1)</script>".to_string();
        let moment =
            Moment { at: 1.0, source: Source::Cluster, node: String::new(), text, tone: Tone::Plain };
        let page = record(&Story::from([("m".to_string(), Part::Moment(moment))]), 0);
        assert!(!page.contains(STYLE_TAG) && !page.contains(SCRIPT_TAG));
        assert_eq!(page.matches("</script>").count(), 2, "a story cannot end its element");
        assert!(page.contains("script-src 'sha256-") && page.contains("\\u003cscript>alert"));
    }
}
