//! From the tree to plain JSON with exact field names, by the table of fields. Everything that Go's strict decoder would refuse is
//! noted in the order in which it would meet it: by name, not by line.

use super::fields::{Field, INSTALL_CONFIG, Kind, Struct};
use super::go;
use super::network::parse_cidr;
use super::problem::{DECODING, FoundAt, Problem};
use super::tree::{Node, Value, join};
use serde_json::{Map, Number, Value as Json};

pub(super) fn decode(root: &Node, problems: &mut Vec<Problem>) -> Json {
    match &root.value {
        Value::Map(_) => {
            let mut decoder = Decoder { problems };
            let place = Place { owner: "", go: String::new(), path: String::new() };
            Json::Object(decoder.fields(&INSTALL_CONFIG, root, &place))
        }
        Value::Null => Json::Object(Map::new()),
        other => {
            let kind = number(other).map_or(other.kind().to_string(), |_| "number".into());
            let text =
                format!("{DECODING} json: cannot unmarshal {kind} into Go value of type types.InstallConfig");
            problems.push(Problem::new(FoundAt::Decode, "", text).hint("the file is a map of fields"));
            Json::Object(Map::new())
        }
    }
}

struct Decoder<'a> {
    problems: &'a mut Vec<Problem>,
}

/// Where the decoder is: for Go the struct and the path of names, for the file the path with indices.
struct Place {
    owner: &'static str,
    go: String,
    path: String,
}

impl Place {
    fn item(&self, i: usize) -> Self {
        Self { owner: self.owner, go: self.go.clone(), path: format!("{}[{i}]", self.path) }
    }
    fn field(&self, of: &Struct, field: &Field) -> Self {
        // Two fields are of a struct inside the struct, which Go names as well.
        let go = match field.name {
            "apiVersion" | "kind" if self.go.is_empty() => format!("TypeMeta.{}", field.name),
            name => join(&self.go, name),
        };
        Self { owner: of.short(), go, path: join(&self.path, field.name) }
    }
}

impl Decoder<'_> {
    fn fields(&mut self, of: &'static Struct, node: &Node, place: &Place) -> Map<String, Json> {
        let Value::Map(entries) = &node.value else {
            self.mismatch(node.value.kind(), &Kind::Struct(of), place);
            return Map::new();
        };
        let mut sorted: Vec<_> = entries.iter().collect();
        sorted.sort_by(|a, b| a.key.cmp(&b.key));
        let mut found = Map::new();
        for entry in sorted {
            let Some(field) = of.field(&entry.key) else {
                let text = format!("{DECODING} json: unknown field {}", go::quote(&entry.key));
                let nearest = of.nearest(&entry.key);
                let hint = nearest.map_or_else(|| fields_of(of), |name| format!("did you mean {name:?}?"));
                let mut problem =
                    Problem::new(FoundAt::Unknown, &join(&place.path, &entry.key), text).hint(hint);
                problem.meant = nearest.map(|name| join(&place.path, name));
                self.problems.push(problem);
                continue;
            };
            if let Some(value) = self.value(&field.kind, &entry.node, &place.field(of, field)) {
                found.insert(field.name.into(), value);
            }
        }
        found
    }

    fn value(&mut self, kind: &'static Kind, node: &Node, place: &Place) -> Option<Json> {
        if let Value::Float(number) = node.value
            && !number.is_finite()
            && !matches!(kind, Kind::Text(_))
        {
            let text =
                format!("error converting YAML to JSON: json: unsupported value: {}", go::float(number));
            self.problems.push(Problem::new(FoundAt::Yaml, &place.path, text).hint("quote it if it is text"));
            return None;
        }
        match (kind, &node.value) {
            (_, Value::Null) => None,
            (Kind::Any, _) => Some(plain(node)),
            (Kind::Text(_), value) => self.text(kind, value, place),
            (Kind::Int(go), value) => self.int(kind, go, value, place),
            (Kind::Bool, Value::Bool(value)) => Some(Json::Bool(*value)),
            (Kind::Cidr, value) => self.cidr(value, place),
            (Kind::List(_, inner), Value::List(items)) => {
                let each = |(i, item): (usize, &Node)| {
                    self.value(inner, item, &place.item(i)).unwrap_or_else(|| zero(inner))
                };
                Some(Json::Array(items.iter().enumerate().map(each).collect()))
            }
            (Kind::Map(_, inner), Value::Map(entries)) => {
                let each = |entry: &super::tree::Entry| {
                    let place = Place { path: join(&place.path, &entry.key), ..place.item(0) };
                    let value = self.value(inner, &entry.node, &place).unwrap_or_else(|| zero(inner));
                    (entry.key.clone(), value)
                };
                Some(Json::Object(entries.iter().map(each).collect()))
            }
            (Kind::Struct(inner), Value::Map(_)) => Some(Json::Object(self.fields(inner, node, place))),
            (_, value) => {
                self.mismatch(value.kind(), kind, place);
                None
            }
        }
    }

    /// Numbers and booleans are taken for text, as upstream's conversion does.
    fn text(&mut self, kind: &'static Kind, value: &Value, place: &Place) -> Option<Json> {
        match value {
            Value::Text(text) => Some(Json::String(text.clone())),
            Value::Int(number) => Some(Json::String(number.to_string())),
            Value::Float(number) => Some(Json::String(go::shortest(*number, 6))),
            Value::Bool(value) => Some(Json::String(value.to_string())),
            other => {
                self.mismatch(other.kind(), kind, place);
                None
            }
        }
    }

    fn int(&mut self, kind: &'static Kind, go: &str, value: &Value, place: &Place) -> Option<Json> {
        let Some(text) = number(value) else {
            self.mismatch(value.kind(), kind, place);
            return None;
        };
        let fits = text.parse::<i64>().ok().filter(|number| match go {
            "int32" => i32::try_from(*number).is_ok(),
            "uint32" => u32::try_from(*number).is_ok(),
            _ => true,
        });
        if fits.is_none() {
            self.mismatch(&format!("number {text}"), kind, place);
        }
        fits.map(Json::from)
    }

    fn cidr(&mut self, value: &Value, place: &Place) -> Option<Json> {
        let (why, hint) = match value {
            Value::Text(text) => match parse_cidr(text) {
                Some(cidr) => return Some(Json::String(cidr.to_string())),
                None => (
                    format!("failed to Parse cidr string to net.IPNet: invalid CIDR address: {text}"),
                    super::network::cidr_hint(text),
                ),
            },
            other => (
                format!(
                    "failed to Unmarshal string: json: cannot unmarshal {} into Go value of type string",
                    other.kind()
                ),
                "write it like 10.128.0.0/14".into(),
            ),
        };
        self.problems.push(Problem::new(FoundAt::Stop, &place.path, format!("{DECODING} {why}")).hint(hint));
        None
    }

    fn mismatch(&mut self, found: &str, kind: &Kind, place: &Place) {
        let text = format!(
            "{DECODING} json: cannot unmarshal {found} into Go struct field {}.{} of type {}",
            place.owner,
            place.go,
            kind.go()
        );
        let hint = format!("write {} here", kind.plainly());
        self.problems.push(Problem::new(FoundAt::Decode, &place.path, text).hint(hint));
    }
}

fn fields_of(of: &Struct) -> String {
    let names: Vec<_> = of.fields.iter().map(|field| field.name).collect();
    match names.len() {
        0 => "remove it; there is nothing to set here".into(),
        1..=12 => format!("remove it; the fields here are {}", names.join(", ")),
        _ => "remove it; `seedling explain installconfig` lists the fields".into(),
    }
}

/// A number as JSON has it.
fn number(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(go::json_float(*number)),
        _ => None,
    }
}

/// What Go leaves where a list has a null.
fn zero(kind: &Kind) -> Json {
    match kind {
        Kind::Text(_) => Json::String(String::new()),
        Kind::Int(_) => Json::from(0),
        Kind::Bool => Json::Bool(false),
        Kind::List(..) => Json::Array(vec![]),
        Kind::Map(..) | Kind::Struct(_) => Json::Object(Map::new()),
        Kind::Cidr | Kind::Any => Json::Null,
    }
}

fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => i64::try_from(*number)
            .map(Json::from)
            .or_else(|_| u64::try_from(*number).map(Json::from))
            .unwrap_or(Json::Null),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(plain).collect()),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), plain(&entry.node))).collect())
        }
    }
}
