//! Service records (`bootstrap/services/*.json`) as upstream's `analyze` reads them: leniently, and with Go's words where it cannot.

use serde_json::Value;

/// What upstream concludes of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Service {
    pub starts: usize,
    /// Its last entry is its end, or that of a command after it, and a success.
    pub successful: bool,
    /// Of the last failure; empty if it was no stage's.
    pub failing_stage: String,
    pub last_error: String,
}

#[derive(Default)]
struct Entry {
    phase: String,
    stage: String,
    result: String,
    error_message: String,
}

/// Go's type of each field, for its messages.
const FIELDS: [(&str, &str); 7] = [
    ("phase", "service.Phase"),
    ("stage", "string"),
    ("result", "service.Result"),
    ("errorMessage", "string"),
    ("errorLine", "string"),
    ("preCommand", "string"),
    ("postCommand", "string"),
];

impl Service {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let mut service = Self::default();
        let mut after_failed_stage = false;
        for entry in entries(json)? {
            let failed = entry.result == "failure";
            service.starts += usize::from(entry.phase == "service start");
            service.successful = matches!(entry.phase.as_str(), "service end" | "post-command end")
                && entry.result == "success";
            if failed {
                // A service's end says again what its stage failed of.
                if !(entry.stage.is_empty() && after_failed_stage) {
                    service.failing_stage = entry.stage;
                }
                service.last_error = entry.error_message;
            }
            after_failed_stage = failed && entry.phase == "stage end";
        }
        Ok(service)
    }
}

/// What follows the array is not looked at; an array that ends early has the entries it has.
fn entries(json: &[u8]) -> Result<Vec<Entry>, String> {
    let mut rest = json.trim_ascii_start();
    rest = rest.strip_prefix(b"[").ok_or("service entries file does not begin with an array")?;
    let mut entries = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.is_empty() || rest.starts_with(b"]") {
            return Ok(entries);
        }
        let undecoded = |why: String| format!("could not decode an entry in the service entries file: {why}");
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let value = match values.next() {
            Some(Ok(value)) => value,
            Some(Err(e)) if e.is_eof() => return Err(undecoded("unexpected EOF".into())),
            Some(Err(e)) => return Err(undecoded(e.to_string())),
            None => return Ok(entries),
        };
        rest = rest.get(values.byte_offset()..).unwrap_or_default();
        entries.push(entry(&value).map_err(undecoded)?);
    }
}

fn entry(value: &Value) -> Result<Entry, String> {
    let Some(object) = value.as_object() else {
        return Err(format!("json: cannot unmarshal {} into Go value of type service.Entry", kind(value)));
    };
    let mut entry = Entry::default();
    for (name, go) in FIELDS {
        let text = match object.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                let kind = kind(other);
                return Err(format!(
                    "json: cannot unmarshal {kind} into Go struct field Entry.{name} of type {go}"
                ));
            }
        };
        match name {
            "phase" => entry.phase = text,
            "stage" => entry.stage = text,
            "result" => entry.result = text,
            "errorMessage" => entry.error_message = text,
            _ => {}
        }
    }
    Ok(entry)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
