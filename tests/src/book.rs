//! The book's command blocks as scripts: what a reader types on a grown lab, and which lines cannot be tried on one. Pure.

/// Something to run with a shell, and where it stands in the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub page: String,
    pub text: String,
}

/// Beginnings of lines that are not run beside other checks, with the reason. A line that begins with none of them is run.
const NOT_RUN: &[(&str, &[&str])] = &[
    ("grows clusters of its own", &["seedling lab up", "seedling chaos handoff", "seedling chaos diagnose"]),
    (
        "takes away what later checks need",
        &[
            "seedling lab down",
            "seedling lab power",
            "seedling lab reinstall",
            "seedling lab reset",
            "seedling lab stop",
            "seedling lab start",
            "seedling lab autostart",
            "seedling certs renew",
            "seedling lab remove",
        ],
    ),
    (
        "waits for a person, or never ends",
        &["seedling status -w", "seedling dashboard", "seedling lab shell", "seedling lab logs -f"],
    ),
    (
        "is for a node's shell",
        &["seedling stage", "seedling bootkube", "seedling etcd", "seedling preflight --node", "crictl"],
    ),
    ("is for a cluster that was off for too long", &["seedling certs recover"]),
    (
        "needs machines elsewhere",
        &[
            "seedling gather bootstrap --bootstrap",
            "seedling status --kubeconfig",
            "seedling verify --kubeconfig",
        ],
    ),
    (
        "needs machines elsewhere",
        &[
            "seedling node",
            "seedling wait-for",
            "seedling preflight --dir",
            "seedling helper",
            "seedling create ignition-configs --dir",
        ],
    ),
    (
        "needs another lab, or a worker",
        &["SEEDLING_LAB=", "seedling kubectl --lab", "seedling lab add", "seedling lab ssh worker-"],
    ),
    ("changes who may run pods", &["seedling kubectl patch scheduler"]),
    (
        "needs a file of the reader's",
        &["seedling release load", "seedling analyze --file", "seedling image", "seedling csr approve csr-"],
    ),
    ("is tried by a check of its own", &["seedling probe"]),
];
/// Longer beginnings that are run all the same.
const RUN: &[&str] = &["seedling chaos diagnose --dry-run", "seedling dashboard --record"];
/// Programs that the tests do not install.
const READERS: &[&str] = &["| jq "];
/// Only a reader knows what stands here.
const PLACEHOLDERS: &[&str] = &["…", "<", "NAME", " -f"];

/// Why a line cannot be run on a grown lab.
pub fn refusal(line: &str) -> Option<&'static str> {
    if RUN.iter().any(|start| line.starts_with(start)) {
        return None;
    }
    let command = line.split(" # ").next().unwrap_or(line).trim_end();
    if command.starts_with("seedling") && PLACEHOLDERS.iter().any(|word| command.contains(word)) {
        return Some("has a placeholder");
    }
    if READERS.iter().any(|program| command.contains(program)) {
        return Some("needs a program of the reader's");
    }
    let refused = |starts: &&[&str]| starts.iter().any(|start| line.starts_with(start));
    NOT_RUN.iter().find(|(_, starts)| refused(starts)).map(|(why, _)| *why)
}

/// Everything of a page that can be run. A block of commands alone is one script, as its reader would paste it; of a block that also shows
/// output, or has a line that cannot be run, each line by itself.
pub fn scripts(page: &str, markdown: &str) -> Vec<Script> {
    let script = |text: String| Script { page: page.into(), text };
    let mut found = Vec::new();
    for block in blocks(markdown) {
        let shown: Vec<_> = block.iter().filter_map(|line| prompted(line)).collect();
        let is_command = |line: &&&str| line.starts_with("seedling ");
        if !shown.is_empty() {
            found.extend(
                shown
                    .iter()
                    .filter(is_command)
                    .filter(|line| refusal(line).is_none())
                    .map(|line| script(line.to_string())),
            );
        } else if block.iter().filter(is_command).count() == 0 {
            continue;
        } else if block.iter().all(|line| refusal(line).is_none()) {
            found.push(script(block.join("\n")));
        } else {
            let lines = block.iter().filter(is_command).filter(|line| refusal(line).is_none());
            found.extend(lines.map(|line| script(line.to_string())));
        }
    }
    found
}

/// `# seedling …` or `$ seedling …`, where what follows is the answer.
fn prompted<'a>(line: &&'a str) -> Option<&'a str> {
    let command = line.strip_prefix("# ").or_else(|| line.strip_prefix("$ "))?;
    command.starts_with("seedling ").then_some(command)
}

fn blocks(markdown: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            if fenced {
                blocks.push(Vec::new());
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| fenced) {
            block.push(line);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(markdown: &str) -> Vec<String> {
        scripts("p.md", markdown).into_iter().map(|script| script.text).collect()
    }

    #[test]
    fn blocks_are_scripts_unless_a_line_cannot_be_run() {
        let page = "prose `seedling status`\n```\na=1\nseedling kubectl get $a\n```\n\
                    ```\n# seedling status\nmaster-0 is on\n$ seedling verify\n```\n\
                    ```\nseedling lab list      # then, for each:\nseedling lab down --name NAME\n```\n\
                    ```\nkubectl get nodes\n```\n";
        let want = [
            "a=1\nseedling kubectl get $a",
            "seedling status",
            "seedling verify",
            "seedling lab list      # then, for each:",
        ];
        assert_eq!(texts(page), want);
    }

    #[test]
    fn lines_are_refused_with_a_reason() {
        for (line, refused) in [
            ("seedling lab up --step", true),
            ("seedling chaos diagnose", true),
            ("seedling chaos diagnose --dry-run       # the faults", false),
            ("seedling dashboard", true),
            ("seedling dashboard --record a.html", false),
            ("seedling lab logs bootstrap -u x.service -f", true),
            ("seedling lab logs bootstrap -u x.service    # see <that> NAME", false),
            ("seedling kubectl get nodes", false),
        ] {
            assert_eq!(refusal(line).is_some(), refused, "{line}");
        }
    }
}
