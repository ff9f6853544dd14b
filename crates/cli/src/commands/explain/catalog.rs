//! Everything that is described, collected from the crates that describe it.

use clap::{Command, CommandFactory};
use seedling_types::description::{Catalog, Description, Kind, Named, Text};
use seedling_types::{paths, ports};

pub(crate) fn catalog() -> Catalog {
    let stages = seedling_bootkube::PLAN.iter().enumerate().map(|(i, step)| step.stage.describe(i + 1));
    let mut all: Vec<Description> = stages.collect();
    let components = [
        seedling_components::describe::COMPONENTS,
        seedling_operators::describe::COMPONENTS,
        seedling_helper::describe::COMPONENTS,
    ];
    let component = |c: &Named| Description::new(Kind::Component, c.name, &c.text);
    all.extend(components.iter().flat_map(|of| of.iter()).map(component));
    all.extend(seedling_pki::trust::describe());
    all.extend(ports::TABLE.iter().map(ports::Port::describe));
    all.extend(paths::TABLE.iter().map(paths::Path::describe));
    let observed = seedling_observe::wait::CONDITIONS.into_iter();
    let on_nodes = seedling_node::CONDITIONS.iter();
    all.extend(seedling_bootkube::CONDITIONS.iter().chain(observed).chain(on_nodes).map(|c| c.describe()));
    commands(&crate::Cli::command(), "", &mut all);
    all.extend(seedling_bootkube::seeds::SEEDS.iter().map(seedling_bootkube::seeds::Seed::describe));
    Catalog(all)
}

/// From clap: what `--help` says. Hidden ones too, since people meet them in journals; not those that only refuse.
fn commands(above: &Command, path: &str, all: &mut Vec<Description>) {
    for command in above.get_subcommands().filter(|c| works(c)) {
        let name = format!("{path} {}", command.get_name()).trim_start().to_string();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let more = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let mut described = Description::new(Kind::Command, &name, &Text::EMPTY);
        described.what = format!("{}.", about.trim_end_matches('.'));
        described.why = more.strip_prefix(&about).unwrap_or(&more).trim().to_string();
        let options: Vec<_> = command.get_arguments().filter(|a| !a.is_hide_set()).map(option).collect();
        described = described.fact("arguments and options", options.join("\n"));
        let below = command.get_subcommands().filter(|c| works(c));
        described.see = below.map(|c| format!("command.{name} {}", c.get_name())).collect();
        described = described.fact("more", format!("seedling {name} --help"));
        all.push(described);
        commands(command, &name, all);
    }
}

fn works(command: &Command) -> bool {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    command.get_name() != "help" && !about.starts_with("Not supported") && !about.starts_with("Refused")
}

fn option(argument: &clap::Arg) -> String {
    let name = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument
            .get_value_names()
            .and_then(|names| names.first())
            .map_or_else(|| argument.get_id().as_str().to_uppercase(), ToString::to_string),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    format!("{name}: {help}")
}

pub(super) fn is_field(asked: &str) -> bool {
    let root = asked.split(['.', '[']).next().unwrap_or_default();
    root.eq_ignore_ascii_case("installconfig")
}

/// Of a field whose page there is.
pub(super) fn field(asked: &str) -> Description {
    let path: Vec<_> = asked.split('.').skip(1).map(|name| name.split('[').next().unwrap_or(name)).collect();
    let path = path.join(".");
    let found = seedling_assets::config::all_fields()
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(&path));
    let described = Description::new(Kind::Field, path, &Text::EMPTY);
    let Some((name, field)) = found else {
        let what = "The whole install-config.yaml.".to_string();
        return Description { name: "installconfig".into(), what, ..described };
    };
    let required = if field.required { "yes" } else { "no" };
    Description { name, what: field.doc.into(), ..described }
        .fact("type", field.kind.word())
        .fact("default", field.default)
        .fact("values", field.values.join(", "))
        .fact("required", required)
}
