//! `explain`: what a field is for, in the layout of openshift-install, from the table that decoding and hints use.

use super::fields::{Field, INSTALL_CONFIG, Kind, Struct};
use std::fmt::Write;

/// The text for `installconfig` or `installconfig.field.field`; in words what is wrong with any other path.
pub fn explain(path: &str) -> Result<String, String> {
    let mut names = path.split('.').map(|name| name.split('[').next().unwrap_or(name));
    let root = names.next().unwrap_or_default();
    if !root.eq_ignore_ascii_case("installconfig") {
        return Err(format!(
            "there is no {root:?} to explain; start with installconfig, e.g. installconfig.networking"
        ));
    }
    let mut kind = &Kind::Struct(&INSTALL_CONFIG);
    let mut field = None;
    let mut seen = "installconfig".to_string();
    for name in names {
        let Some(of) = kind.inside() else { return Err(format!("{seen} has no fields")) };
        let Some(found) = of.field(name) else {
            let hint = of.nearest(name).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            return Err(format!("{seen} has no field {name:?}{hint}"));
        };
        seen = format!("{seen}.{}", found.name);
        kind = &found.kind;
        field = Some(found);
    }
    Ok(page(kind, field))
}

/// The description of one field, for a comment beside it.
pub(super) fn describe(path: &str) -> Option<&'static str> {
    let mut of: Option<&'static Struct> = Some(&INSTALL_CONFIG);
    let mut doc = None;
    for name in path.split('.') {
        let field = of?.field(name)?;
        of = field.kind.inside();
        doc = Some(field.doc);
    }
    doc
}

/// Every field with its path, in the order of the table.
pub fn all_fields() -> Vec<(String, &'static Field)> {
    fn collect(of: &'static Struct, above: &str, found: &mut Vec<(String, &'static Field)>) {
        for field in of.fields {
            let path =
                if above.is_empty() { field.name.to_string() } else { format!("{above}.{}", field.name) };
            found.push((path.clone(), field));
            if let Some(inside) = field.kind.inside() {
                collect(inside, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    collect(&INSTALL_CONFIG, "", &mut found);
    found
}

fn page(kind: &Kind, field: Option<&Field>) -> String {
    let mut text = format!("KIND:     InstallConfig\nVERSION:  v1\n\nRESOURCE: <{}>\n", kind.word());
    if let Some(field) = field {
        facts(&mut text, field, "  ");
        paragraph(&mut text, field.doc, "  ");
    }
    let Some(of) = kind.inside() else { return text };
    if field.is_none_or(|field| field.doc != of.doc) {
        paragraph(&mut text, of.doc, "  ");
    }
    if !of.fields.is_empty() {
        text.push_str("\nFIELDS:\n");
    }
    for (i, field) in of.fields.iter().enumerate() {
        let required = if field.required { " -required-" } else { "" };
        let gap = if i == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}    {} <{}>{required}", field.name, field.kind.word());
        facts(&mut text, field, "      ");
        paragraph(&mut text, field.doc, "      ");
    }
    text
}

fn facts(text: &mut String, field: &Field, indent: &str) {
    if !field.default.is_empty() {
        let _ = writeln!(text, "{indent}Default: {}", field.default);
    }
    if !field.values.is_empty() {
        let values: Vec<_> = field.values.iter().map(|value| format!("{value:?}")).collect();
        let _ = writeln!(text, "{indent}Valid Values: {}", values.join(","));
    }
}

/// Wrapped for a terminal of 80 columns.
fn paragraph(text: &mut String, words: &str, indent: &str) {
    for line in wrap(words, 80 - indent.len()) {
        let _ = writeln!(text, "{indent}{line}");
    }
}

pub(super) fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every field of every struct has its page, and says something.
    #[test]
    fn every_field_is_explained() {
        fn walk(of: &'static Struct, path: &str, seen: &mut HashSet<String>) {
            assert!(of.fields.is_sorted_by_key(|field| field.name), "{path}: not sorted");
            for field in of.fields {
                let path = format!("{path}.{}", field.name);
                let page = explain(&path).unwrap();
                assert!(page.contains(field.doc.split(' ').next().unwrap()), "{path}");
                if let Some(inner) = field.kind.inside() {
                    walk(inner, &path, seen);
                }
                assert!(seen.insert(path));
            }
        }
        let mut seen = HashSet::new();
        walk(&INSTALL_CONFIG, "installconfig", &mut seen);
        assert!(seen.contains("installconfig.platform.baremetal.hosts.bmc.address"));
        assert!(seen.len() > 180, "{}", seen.len());
    }

    #[test]
    fn a_page() {
        let page = explain("installconfig.networking.clusterNetwork").unwrap();
        let want = "KIND:     InstallConfig\nVERSION:  v1\n\nRESOURCE: <[]object>\n  Default: 10.128.0.0/14, hostPrefix 23\n";
        assert!(page.starts_with(want), "{page}");
        assert!(
            page.contains(
                "\nFIELDS:\n    cidr <string> -required-\n      The network.\n\n    hostPrefix <integer>\n"
            ),
            "{page}"
        );
    }

    #[test]
    fn wrong_paths_are_answered() {
        let why = explain("installconfig.networking.clusterNetwrk").unwrap_err();
        assert_eq!(
            why,
            "installconfig.networking has no field \"clusterNetwrk\"; did you mean clusterNetwork?"
        );
        assert_eq!(
            explain("installconfig.baseDomain.x").unwrap_err(),
            "installconfig.baseDomain has no fields"
        );
        assert!(explain("pods").unwrap_err().contains("start with installconfig"));
    }
}
