//! What is not YAML, for people: where to look, and what to do. Upstream's words alone name the place where the reader gave up.

use super::problem::Mark;

/// What never ends is better shown where it begins.
pub(super) fn begins_earlier(what: &str) -> bool {
    what == "found unexpected end of stream" || what.starts_with("did not find expected ',' or")
}

/// `what` is the reader's word for it; `at` the place in `text`.
pub(super) fn hint(what: &str, text: &str, at: Option<Mark>) -> &'static str {
    let part = |words: &str| what.contains(words);
    match at.and_then(|at| character(text, at)) {
        Some('\t') => return "indent with blanks: a tab cannot indent",
        Some('@' | '`' | '%') if part("cannot start any token") => {
            return "put the value in quotes: it starts with a character that means something in YAML";
        }
        _ => {}
    }
    if part("mapping values are not allowed") {
        "put a value that has a ':' in it in quotes; or is this line, or the one before, indented wrongly?"
    } else if part("unexpected end of stream") {
        "this quote is never closed"
    } else if part("did not find expected ','") {
        "this bracket is never closed, or a comma is missing behind it"
    } else if part("did not find expected key") || part("'-' indicator") {
        "is this line indented as its neighbours are? are the quotes before it closed?"
    } else if part("could not find expected ':'") {
        "the line before has no ':' behind a name"
    } else if part("unknown anchor") || part("alphabetic or numeric") {
        "put a value that starts with '*' or '&' in quotes"
    } else {
        "check indentation, quotes and brackets"
    }
}

fn character(text: &str, at: Mark) -> Option<char> {
    let [line, column] = [at.line, at.column].map(|n| usize::try_from(n).ok()?.checked_sub(1));
    text.lines().nth(line?)?.chars().nth(column?)
}

#[cfg(test)]
mod tests {
    use crate::config::{Context, InstallConfig};

    /// Place and hint of what is refused.
    #[test]
    fn places_and_hints() {
        let cases = [
            ("a: 1\n\tb: 2\n", (2, 1), "a tab cannot indent"),
            ("a: 1\nb: @x\n", (2, 4), "put the value in quotes"),
            ("a: b: c\n", (1, 5), "that has a ':'"),
            ("a: 1\nb: 'x\nc: 1\n", (2, 4), "this quote is never closed"),
            ("a: 1\nb: [x, y\nc: 1\n", (2, 4), "this bracket is never closed"),
            ("a:\n  b: 1\n c: 2\n", (3, 2), "indented as its neighbours"),
            ("a: 1\nb\nc: 1\n", (3, 1), "has no ':'"),
            ("a: *b\n", (1, 4), "'*'"),
            ("a: 1\na: 2\n", (2, 4), "keep one of the two"),
        ];
        for (text, place, hint) in cases {
            let found = InstallConfig::parse(text, &Context::new("")).err().unwrap_or_default();
            let at = found[0].at.map(|at| (at.line, at.column));
            let told = found[0].hint.clone().unwrap_or_default();
            assert!(at == Some(place) && told.contains(hint), "{text:?}: {at:?} {told}");
        }
    }
}
