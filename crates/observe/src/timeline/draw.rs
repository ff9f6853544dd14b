//! The same timeline for a terminal and as SVG.

use super::{Bar, Timeline};
use std::fmt::Write;

const WIDTH: usize = 60;

/// One line a step; `#` is the critical path, `=` work, `.` waiting.
pub fn terminal(timeline: &Timeline) -> String {
    let mut text = String::new();
    let column = |at: f64| (at / timeline.seconds.max(0.001) * WIDTH as f64) as usize;
    for row in &timeline.rows {
        for bar in &row.bars {
            let (from, to) = (column(bar.from).min(WIDTH - 1), column(bar.to).min(WIDTH));
            let mark = match (is_critical(timeline, &row.node, bar), bar.waits) {
                (true, _) => "#",
                (false, true) => ".",
                (false, false) => "=",
            };
            let drawn = format!("{}{}", " ".repeat(from), mark.repeat(to.saturating_sub(from).max(1)));
            let seconds = bar.to - bar.from;
            let _ = writeln!(text, "{:<10} {drawn:<WIDTH$} {seconds:>6.1}s  {}", row.node, bar.step);
        }
    }
    let _ = writeln!(text, "\ncritical path, {:.1}s:", timeline.seconds);
    for part in &timeline.critical {
        let (node, step) = (&part.node, &part.step);
        let _ = writeln!(text, "{:>7.1}s  {:>6.1}s  {node:<10} {step}", part.from, part.to - part.from);
    }
    text
}

fn is_critical(timeline: &Timeline, node: &str, bar: &Bar) -> bool {
    let on = |p: &super::Part| p.node == node && p.step == bar.step && p.from < bar.to && p.to > bar.from;
    timeline.critical.iter().any(on)
}

const LEFT: f64 = 110.0;
const PER_SECOND: f64 = 14.0;
const LINE: f64 = 16.0;

pub fn svg(timeline: &Timeline) -> String {
    let lines = timeline.rows.iter().map(|row| row.bars.len()).sum::<usize>() as f64;
    let (width, height) = (LEFT + timeline.seconds * PER_SECOND + 320.0, (lines + 2.0) * LINE);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut second = 0.0;
    while second <= timeline.seconds {
        let x = LEFT + second * PER_SECOND;
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {LINE} V{height:.0}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"12\" fill=\"#666\">{second:.0}s</text>"
        );
        second += 10.0;
    }
    let mut y = LINE;
    for row in &timeline.rows {
        let _ = writeln!(
            text,
            "<text x=\"4\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
            y + 12.0,
            escape(&row.node)
        );
        for bar in &row.bars {
            let fill = match (is_critical(timeline, &row.node, bar), bar.waits) {
                (true, _) => "#d62728",
                (false, true) => "#c7c7c7",
                (false, false) => "#1f77b4",
            };
            let (x, wide) = (LEFT + bar.from * PER_SECOND, ((bar.to - bar.from) * PER_SECOND).max(2.0));
            let _ = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{:.0}\" width=\"{wide:.1}\" height=\"12\" fill=\"{fill}\"/><text x=\"{:.1}\" y=\"{:.0}\">{} ({:.1}s)</text>",
                y + 2.0,
                x + wide + 4.0,
                y + 12.0,
                escape(&bar.step),
                bar.to - bar.from,
            );
            y += LINE;
        }
    }
    text + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
