//! One way to write YAML: block style, long text on one line so that a line can be searched and replaced.

use crate::{CreateError, Result};
use serde::Serialize;

pub(crate) fn to_yaml(value: &impl Serialize) -> Result<String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options)
        .map_err(|e| CreateError::Yaml(e.to_string()))?;
    Ok(text)
}
