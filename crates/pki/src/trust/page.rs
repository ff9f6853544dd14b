//! The table as a page of the book.

use super::{Bundle, Leaf, Names, Owned, Renewal, Signer, Start, TABLE, YEAR};
use crate::Policy;
use time::Duration;

const INTRO: &str = "
Every key pair in the life of a cluster, and who trusts it. Most files of `tls/` are on the bootstrap node, in `/opt/openshift`. What is in no Secret
is not renewed: only the bootstrap node, or a person, has it. CD is the cluster domain. Lives are those of a cluster that does not [change
them](reference.md#lives-of-certificates); \"then\" is for what is made later in the place of the first one. [Certificates and
recovery](design/certificates.md) says how renewal works, and `seedling certs list` prints the Secrets of a running cluster.

Not in the table: kubelets ask for their own pairs (`system:node:NAME`, signed by csr-signer, one year) and renew them.

## Key pairs
| certificate | subject | names | signer | made by | kept in | renewed by | life |
|---|---|---|---|---|---|---|---|
";

const BUNDLES: &str = "
## Bundles
| file | ConfigMap | trusted signers | made by | copied into revisions of |
|---|---|---|---|---|
";

/// What follows the title of docs/certificates.md.
pub fn page() -> String {
    let mut text = INTRO.to_string();
    for part in &TABLE {
        text.extend(part.signers.iter().map(|signer| row(&signer_cells(signer, part.made_by))));
        text.extend(part.leaves.iter().map(|leaf| row(&leaf_cells(leaf, part.made_by))));
    }
    text.push_str(BUNDLES);
    for part in &TABLE {
        text.extend(part.bundles.iter().map(|bundle| row(&bundle_cells(bundle, part.made_by))));
    }
    text
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

const COLUMNS: [&str; 8] = ["file", "subject", "names", "signer", "made by", "kept in", "renewed by", "life"];
const BUNDLE_COLUMNS: [&str; 5] =
    ["file", "ConfigMap", "trusted signers", "made by", "copied into revisions of"];

pub(super) fn signer_facts(signer: &Signer, made_by: &str) -> Vec<(&'static str, String)> {
    COLUMNS.into_iter().zip(signer_cells(signer, made_by)).skip(1).collect()
}

pub(super) fn leaf_facts(leaf: &Leaf, made_by: &str) -> Vec<(&'static str, String)> {
    COLUMNS.into_iter().zip(leaf_cells(leaf, made_by)).skip(1).collect()
}

pub(super) fn bundle_facts(bundle: &Bundle, made_by: &str) -> Vec<(&'static str, String)> {
    BUNDLE_COLUMNS.into_iter().zip(bundle_cells(bundle, made_by)).collect()
}

fn signer_cells(signer: &Signer, made_by: &str) -> [String; 8] {
    let time = if signer.start == Start::Dated { "@TIME" } else { "" };
    let ou = signer.ou.map(|ou| format!("OU={ou}, ")).unwrap_or_default();
    let subject = format!("`{ou}CN={}{time}`", signer.cn);
    let [kept, renewed, life] = keeping(signer.file, &signer.owned, signer.validity);
    [signer.file.into(), subject, String::new(), "itself".into(), made_by.into(), kept, renewed, life]
}

fn leaf_cells(leaf: &Leaf, made_by: &str) -> [String; 8] {
    let name = if leaf.file.is_empty() { leaf.owned.secret } else { leaf.file };
    let groups: String = leaf.organizations.iter().map(|group| format!("O={group}, ")).collect();
    let cn = if leaf.names == Names::EtcdMember { "ADDRESS" } else { leaf.cn };
    let [kept, renewed, life] = keeping(leaf.file, &leaf.owned, leaf.validity);
    let made_by = if made_by == "operator" { renewed.clone() } else { made_by.into() };
    let (subject, names) = (format!("`{groups}CN={cn}`"), leaf.names.words().into());
    [name.into(), subject, names, leaf.signer.file.into(), made_by, kept, renewed, life]
}

fn bundle_cells(bundle: &Bundle, made_by: &str) -> [String; 5] {
    let signers: Vec<_> = bundle.signers.iter().map(|signer| signer.file).collect();
    let copies: Vec<_> = bundle.copies.iter().map(|(pod, map)| format!("{} ({map})", pod.name())).collect();
    let file = file(bundle.file).unwrap_or_default().replace(".*", ".crt");
    [file, object(bundle.namespace, bundle.configmap), signers.join(", "), made_by.into(), copies.join(", ")]
}

fn file(stem: &str) -> Option<String> {
    (!stem.is_empty()).then(|| format!("`tls/{stem}.*`"))
}

fn object(namespace: &str, name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{namespace}/{name}") }
}

/// Where a pair is kept, who renews it, and how long it lives.
fn keeping(stem: &str, owned: &Owned, first: Duration) -> [String; 3] {
    let secret = owned.is_kept().then(|| format!("Secret {}", object(owned.namespace, owned.secret)));
    let kept = file(stem).into_iter().chain(secret).collect::<Vec<_>>().join(", ");
    let (policy, operator) = (Policy::default(), format!("{} operator", owned.operator));
    let (renewed, next) = match owned.renewal {
        Renewal::Leaf => (operator, policy.leaf),
        Renewal::LongLeaf | Renewal::Signer => (operator, policy.signer),
        Renewal::Never("") => (String::new(), first),
        Renewal::Never(why) => (format!("nobody ({why})"), first),
    };
    let then = if next == first { String::new() } else { format!(", then {}", span(next)) };
    [kept, renewed, span(first) + &then]
}

fn span(life: Duration) -> String {
    match life.whole_days() {
        1 => "1 day".into(),
        days if days == YEAR.whole_days() => "1 year".into(),
        days => format!("{} years", days / YEAR.whole_days()),
    }
}

impl Names {
    fn words(self) -> &'static str {
        match self {
            Names::None => "",
            Names::Localhost => "localhost, 127.0.0.1, ::1",
            Names::ServiceNetwork => {
                "kubernetes and openshift, also in .default.svc.cluster.local; the first service address"
            }
            Names::Api => "api.CD",
            Names::ApiInt => "api-int.CD",
            Names::MachineConfigServer => "api-int.CD, virtual addresses of the API",
            Names::EtcdMember => {
                "localhost, 127.0.0.1, ::1, the member's address; etcd in .kube-system.svc and .openshift-etcd.svc"
            }
        }
    }
}
