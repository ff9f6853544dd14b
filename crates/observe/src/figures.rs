//! Figures in a text, taken from reports: what stands between `<!-- report:NAME -->` and `<!-- /report -->` is that report's summary.

use crate::Report;
use crate::report::ReportError;
use std::path::Path;
use thiserror::Error;

const BEGIN: &str = "<!-- report:";
const END: &str = "<!-- /report -->";

/// Markers that do not pair, or a report with nothing to quote.
#[derive(Debug, Error)]
pub enum FigureError {
    #[error("{0}")]
    NoMarker(String),
    #[error("{END} without a beginning")]
    NoBeginning,
    #[error("a report begins within {0}")]
    Within(String),
    #[error("{0} is not ended")]
    NotEnded(String),
    #[error("the report {0} has no summary")]
    NoSummary(String),
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// The text with the summaries as they are now. Pure.
pub fn quote(
    text: &str,
    summary: impl Fn(&str) -> Result<Vec<String>, FigureError>,
) -> Result<String, FigureError> {
    let mut lines = Vec::new();
    // The report whose old lines are being left out.
    let mut within = None;
    for line in text.lines() {
        match (within, line.trim().strip_prefix(BEGIN), line.trim() == END) {
            (None, Some(rest), _) => {
                let name = rest.strip_suffix("-->").ok_or_else(|| FigureError::NoMarker(line.into()))?.trim();
                lines.push(line.to_string());
                lines.extend(summary(name)?);
                within = Some(name);
            }
            (None, None, true) => return Err(FigureError::NoBeginning),
            (Some(name), Some(_), _) => return Err(FigureError::Within(name.into())),
            (Some(_), _, true) => {
                lines.push(line.to_string());
                within = None;
            }
            (Some(_), ..) => {}
            (None, ..) => lines.push(line.to_string()),
        }
    }
    if let Some(name) = within {
        return Err(FigureError::NotEnded(name.into()));
    }
    Ok(lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" })
}

/// Of `<name>.json` in a folder.
pub fn summary_of(reports: &Path, name: &str) -> Result<Vec<String>, FigureError> {
    let report = Report::read(&reports.join(format!("{name}.json")))?;
    match report.summary.is_empty() {
        true => Err(FigureError::NoSummary(name.into())),
        false => Ok(report.summary),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn summary(name: &str) -> Result<Vec<String>, FigureError> {
        match name {
            "chaos" => Ok(vec!["154 green".into(), "0 red".into()]),
            other => Err(FigureError::NoSummary(other.into())),
        }
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
