//! Figures in a text, taken from reports: what stands between `<!-- report:NAME -->` and `<!-- /report -->` is that report's summary.

use crate::Report;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

const BEGIN: &str = "<!-- report:";
const END: &str = "<!-- /report -->";

/// The text with the summaries as they are now. Pure.
pub fn quote(text: &str, summary: impl Fn(&str) -> Result<Vec<String>>) -> Result<String> {
    let mut lines = Vec::new();
    // The report whose old lines are being left out.
    let mut within = None;
    for line in text.lines() {
        match (within, line.trim().strip_prefix(BEGIN), line.trim() == END) {
            (None, Some(rest), _) => {
                let name = rest.strip_suffix("-->").with_context(|| line.to_string())?.trim();
                lines.push(line.to_string());
                lines.extend(summary(name)?);
                within = Some(name);
            }
            (None, None, true) => bail!("{END} without a beginning"),
            (Some(name), Some(_), _) => bail!("a report begins within {name}"),
            (Some(_), _, true) => {
                lines.push(line.to_string());
                within = None;
            }
            (Some(_), ..) => {}
            (None, ..) => lines.push(line.to_string()),
        }
    }
    ensure!(within.is_none(), "{} is not ended", within.unwrap_or_default());
    Ok(lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" })
}

/// Of `<name>.json` in a folder.
pub fn summary_of(reports: &Path, name: &str) -> Result<Vec<String>> {
    let report = Report::read(&reports.join(format!("{name}.json")))?;
    ensure!(!report.summary.is_empty(), "the report {name} has no summary");
    Ok(report.summary)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn summary(name: &str) -> Result<Vec<String>> {
        ensure!(name == "chaos", "there is no report {name}");
        Ok(vec!["154 green".into(), "0 red".into()])
    }

    #[test]
    fn a_figure_is_what_its_report_says() {
        let text = |middle: &str| format!("# T\n<!-- report:chaos -->\n{middle}<!-- /report -->\nend\n");
        let want = text("154 green\n0 red\n");
        for old in ["", "900 green\n", "154 green\n0 red\n"] {
            assert_eq!(quote(&text(old), summary).unwrap(), want, "{old:?}");
        }
        assert_eq!(quote("no figures\n", summary).unwrap(), "no figures\n");
    }

    #[test]
    fn markers_that_lead_nowhere_are_refused() {
        for text in [
            "<!-- report:bench -->\n<!-- /report -->\n",
            "<!-- report:chaos -->\n",
            "<!-- /report -->\n",
            "<!-- report:chaos -->\n<!-- report:chaos -->\n<!-- /report -->\n",
        ] {
            assert!(quote(text, summary).is_err(), "{text}");
        }
    }
}
