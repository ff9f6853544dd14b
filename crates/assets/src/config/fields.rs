//! Every field of an install-config: its name, Go's type, what it is for. Decoding, hints and `explain` all read this table.

#[rustfmt::skip] // A row is a line.
mod baremetal;
#[rustfmt::skip]
mod table;

pub(super) use table::INSTALL_CONFIG;

pub struct Struct {
    /// Go's name of it, as type errors spell it.
    pub go: &'static str,
    pub doc: &'static str,
    pub fields: &'static [Field],
}

pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub doc: &'static str,
    pub required: bool,
    pub default: &'static str,
    pub values: &'static [&'static str],
}

pub enum Kind {
    /// Text of a Go type, mostly `string`.
    Text(&'static str),
    Int(&'static str),
    Bool,
    Cidr,
    List(&'static str, &'static Kind),
    Map(&'static str, &'static Kind),
    Struct(&'static Struct),
    /// Not looked into.
    Any,
}

pub(super) const STRING: Kind = Kind::Text("string");
pub(super) const STRINGS: Kind = Kind::List("[]string", &STRING);

impl Struct {
    /// As Go does: the exact name, or else one that differs in case only.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let exact = self.fields.iter().find(|field| field.name == name);
        exact.or_else(|| self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
    }
    /// The name without its package.
    pub fn short(&self) -> &'static str {
        self.go.rsplit('.').next().unwrap_or(self.go)
    }
    /// The field that a wrong name was most likely meant to be: at most two letters apart.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        let distance = |field: &Field| distance(name, field.name);
        let nearest = self.fields.iter().min_by_key(|field| distance(field))?;
        (distance(nearest) <= 2 && name.len() > 2).then_some(nearest.name)
    }
}

impl Field {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, doc, required: false, default: "", values: &[] }
    }
    const fn text(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, STRING, doc)
    }
    const fn required(mut self) -> Self {
        self.required = true;
        self
    }
    const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }
    const fn values(mut self, values: &'static [&'static str]) -> Self {
        self.values = values;
        self
    }
}

impl Kind {
    /// Go's name of the type.
    pub fn go(&self) -> &'static str {
        match self {
            Kind::Text(go) | Kind::Int(go) | Kind::List(go, _) | Kind::Map(go, _) => go,
            Kind::Bool => "bool",
            Kind::Cidr => "ipnet.IPNet",
            Kind::Struct(inner) => inner.go,
            Kind::Any => "interface {}",
        }
    }
    /// What to write there, for a person.
    pub fn plainly(&self) -> &'static str {
        match self {
            Kind::Text(_) => "text",
            Kind::Int(_) => "a whole number",
            Kind::Bool => "true or false",
            Kind::Cidr => "a network such as 10.128.0.0/14",
            Kind::List(..) => "a list",
            Kind::Map(..) | Kind::Struct(_) => "a map of fields",
            Kind::Any => "anything",
        }
    }
    /// The kind's name in `explain`.
    pub fn word(&self) -> String {
        match self {
            Kind::Text(_) | Kind::Cidr => "string".into(),
            Kind::Int(_) => "integer".into(),
            Kind::Bool => "boolean".into(),
            Kind::List(_, inner) => format!("[]{}", inner.word()),
            Kind::Map(..) | Kind::Struct(_) | Kind::Any => "object".into(),
        }
    }
    /// The fields below, of the thing itself or of each in a list.
    pub fn inside(&self) -> Option<&'static Struct> {
        match self {
            Kind::Struct(inner) => Some(inner),
            Kind::List(_, inner) => inner.inside(),
            _ => None,
        }
    }
}

fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
