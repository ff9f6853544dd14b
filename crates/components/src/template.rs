//! The payload's templates (`release/templates`), completed: a text with several documents becomes objects.

use seedling_types::template::{TemplateError, render, table};
use serde_json::Value;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum BadTemplate {
    #[error(transparent)]
    Name(#[from] TemplateError),
    #[error("{0}")]
    Yaml(Box<serde_saphyr::Error>),
}

/// In the order of the text. A value stands where it is written: what may hold a colon is in quotes there, and a list is [`quoted`].
pub(crate) fn objects(template: &str, values: &[(&str, &str)]) -> Result<Vec<Value>, BadTemplate> {
    let text = render(template, table(values))?;
    serde_saphyr::from_multiple(&text).map_err(|e| BadTemplate::Yaml(e.into()))
}

/// As JSON, which is YAML too: a list, or a text of several lines in one.
pub(crate) fn quoted(value: impl Into<Value>) -> String {
    value.into().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_become_objects_and_mistakes_are_told() {
        let text = "# first\na: \"${address}\"\nb: ${list}\n---\nc: ${port}\n";
        let list = quoted(vec!["172.30.0.10", "fd02::a"]);
        let values = [("address", "fd02::a"), ("list", list.as_str()), ("port", "53")];
        let made = objects(text, &values).unwrap_or_default();
        assert_eq!(made, [json!({"a": "fd02::a", "b": ["172.30.0.10", "fd02::a"]}), json!({"c": 53})]);
        assert!(matches!(objects(text, &values[..2]), Err(BadTemplate::Name(_))));
        assert!(matches!(objects("a: [", &[]), Err(BadTemplate::Yaml(_))));
    }
}
