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
    let conditions = [
        seedling_bootkube::CONDITIONS,
        seedling_observe::wait::CONDITIONS,
        seedling_node::CONDITIONS,
        seedling_cluster::CONDITIONS,
        seedling_lab::CONDITIONS,
        crate::conditions::CONDITIONS,
    ];
    all.extend(conditions.into_iter().flatten().map(|condition| condition.describe()));
    commands(&crate::Cli::command(), "", &mut all);
    all.extend(seedling_bootkube::seeds::SEEDS.iter().map(seedling_bootkube::seeds::Seed::describe));
    all.extend(fields());
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

fn fields() -> impl Iterator<Item = Description> {
    seedling_assets::config::all_fields().into_iter().map(|(path, field)| {
        Description { what: field.doc.into(), ..Description::new(Kind::Field, path, &Text::EMPTY) }
            .fact("type", field.kind.word())
            .fact("default", field.default)
            .fact("values", field.values.join(", "))
            .fact("required", if field.required { "yes" } else { "no" })
    })
}

/// The path below `installconfig`, if that is asked; `field` means the same. Which entry of a list does not matter.
pub(super) fn field_path(asked: &str) -> Option<String> {
    let mut names = asked.split('.').map(|name| name.split('[').next().unwrap_or(name));
    let is_root = |name: &str| ["installconfig", "field"].iter().any(|root| name.eq_ignore_ascii_case(root));
    names.next().is_some_and(is_root).then(|| names.collect::<Vec<_>>().join("."))
}

/// The whole file, which no field's description is about.
pub(super) fn whole_file() -> Description {
    let what = "The whole install-config.yaml.".to_string();
    Description { what, ..Description::new(Kind::Field, "installconfig", &Text::EMPTY) }
}
