//! The one grammar of texts that are completed later, by another program or on another machine: the payload's manifests, static pods
//! that an installer writes on its master, linker flags, the lab's install-config.
//!
//! - `${name}` stands for a value; `:` may be part of a name (`${image:etcd}`). A name that the reader does not know is an error.
//! - `$${` is written `${` in the result.
//! - Any other dollar stands for itself: `$HOME`, `$(VARIABLE)` and `^a$` stay as they are.
//!
//! Shell scripts are not templates. Text in the program's own code is completed by `format!`, whose names the compiler checks.

use serde_json::Value;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("line {line}: there is no value for ${{{name}}}")]
    Unknown { name: String, line: usize },
    #[error("line {line}: ${{ without a closing brace")]
    Unclosed { line: usize },
}

/// Completes a text with the values of its names.
pub fn render(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, TemplateError> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            done.extend([before, "${"]);
            rest = after;
            continue;
        }
        let line = text[..text.len() - after.len()].matches('\n').count() + 1;
        let (name, after) = after
            .split_once('}')
            .filter(|(name, _)| !name.contains('\n'))
            .ok_or(TemplateError::Unclosed { line })?;
        done += before;
        done += &value(name).ok_or_else(|| TemplateError::Unknown { name: name.into(), line })?;
        rest = after;
    }
    Ok(done + rest)
}

/// Values that are known beforehand, for [`render`].
pub fn table<'a>(values: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
}

/// Changes every string of an object. Keys stay: in a parsed object a value cannot become anything but a string.
pub fn map_strings<E>(value: &mut Value, change: &impl Fn(&str) -> Result<String, E>) -> Result<(), E> {
    match value {
        Value::String(text) => *text = change(text)?,
        Value::Array(items) => return items.iter_mut().try_for_each(|item| map_strings(item, change)),
        Value::Object(fields) => {
            return fields.values_mut().try_for_each(|field| map_strings(field, change));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(name: &str) -> Option<String> {
        let etcd = ("image:etcd", "r/etcd@sha256:1");
        table(&[("node", "master-0"), etcd, ("nothing", ""), ("lines", "a\nb")])(name)
    }

    #[test]
    fn names_are_replaced_and_all_else_stays() {
        for (text, expected) in [
            ("", ""),
            ("--name=${node}", "--name=master-0"),
            ("${node}${nothing}${node}", "master-0master-0"),
            ("image: ${image:etcd}\n", "image: r/etcd@sha256:1\n"),
            (
                "NODE_NAME $HOME $(VARIABLE) $1 $$ ^a{2}$ {node}",
                "NODE_NAME $HOME $(VARIABLE) $1 $$ ^a{2}$ {node}",
            ),
            ("$${node} $$${node}", "${node} $${node}"),
            ("$${", "${"),
            ("}${lines}{", "}a\nb{"),
        ] {
            assert_eq!(render(text, value).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn unknown_names_and_open_braces_are_errors_with_their_line() {
        let unknown = |name: &str, line| Err(TemplateError::Unknown { name: name.into(), line });
        let unclosed = |line| Err(TemplateError::Unclosed { line });
        for (text, expected) in [
            ("${nod}", unknown("nod", 1)),
            ("${NODE}", unknown("NODE", 1)),
            ("${}", unknown("", 1)),
            ("${ node }", unknown(" node ", 1)),
            ("${lines}\n${node}\n\n${image:nope}", unknown("image:nope", 4)),
            ("${x:-default}", unknown("x:-default", 1)),
            ("a\n${node", unclosed(2)),
            ("${node\n}", unclosed(1)),
            ("${", unclosed(1)),
        ] {
            assert_eq!(render(text, value), expected, "{text}");
        }
        let said = |text| render(text, value).map_err(|e| e.to_string());
        assert_eq!(said("\n${image:nope}"), Err("line 2: there is no value for ${image:nope}".into()));
        assert_eq!(said("${"), Err("line 1: ${ without a closing brace".into()));
    }

    #[test]
    fn strings_are_changed_wherever_they_are_and_stay_strings() {
        let mut pod =
            json!({"${node}": 7, "labels": {"revision": "${node}"}, "args": ["--name=${node}", true, null]});
        let changed = map_strings(&mut pod, &|text| render(text, |_| Some("7".into())));
        assert_eq!(changed, Ok(()));
        assert_eq!(pod, json!({"${node}": 7, "labels": {"revision": "7"}, "args": ["--name=7", true, null]}));
        assert!(map_strings(&mut json!([{"a": "${x}"}]), &|text| render(text, value)).is_err());
    }

    proptest! {
        #[test]
        fn text_without_names_is_unchanged(text in any::<String>().prop_map(|t| t.replace("${", "$ {"))) {
            prop_assert_eq!(render(&text, value), Ok(text));
        }

        #[test]
        fn nothing_is_left_to_replace(parts in prop::collection::vec(
            prop_oneof![Just("${node}"), Just("${image:etcd}"), Just("${nothing}"), Just("x{}\n"), Just("y ")], 0..9,
        )) {
            let done = render(&parts.concat(), value).unwrap_or_else(|e| panic!("{e}"));
            prop_assert!(!done.contains("${"), "{}", done);
            prop_assert_eq!(render(&done, value), Ok(done));
        }

        /// Whatever it is given, it answers, and an error names a line of the text.
        #[test]
        fn any_text_has_an_answer(text in "[${}a-z:\n]{0,40}") {
            if let Err(TemplateError::Unknown { line, .. } | TemplateError::Unclosed { line }) = render(&text, value) {
                prop_assert!((1..=text.matches('\n').count() + 1).contains(&line));
            }
        }
    }
}
