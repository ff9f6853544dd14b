//! `seedling image`: what real machines boot, for the network, as a disk or as an ISO.

use super::lab;
use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seedling_image::{Contents, Format, build};
use seedling_release::default_cache;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build the image that real machines boot: Debian, a kernel and Ignition, from the same packages as a lab's machines
    ///
    /// Needs root, and Debian's tools for boot loaders and file systems; what is missing is named. The same inputs are built once.
    Build(BuildArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BuildArgs {
    /// What to build
    #[arg(long, value_enum, default_value_t = Form::Netboot)]
    format: Form,
    /// The directory to write into [default: the cache for netboot, else the current one]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The Ignition config to carry; without it, a machine asks the server that gave it its address
    #[arg(long, value_name = "FILE")]
    ignition: Option<PathBuf>,
    /// A kernel argument, e.g. ip=dhcp or seedling.install_dev=/dev/sda; may be repeated
    #[arg(long = "argument", value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Output format
    #[arg(short = 'o', value_name = "FORMAT", value_enum, default_value_t = lab::Format::Table)]
    shown: lab::Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Kernel, initramfs, root file system and boot loaders, as the helper serves them
    Netboot,
    /// A disk image
    Raw,
    /// A disk image for QEMU
    Qcow2,
    /// An ISO for BIOS and UEFI, for CDs and sticks
    Iso,
}

pub(crate) async fn run(command: ImageCommand) -> Result<()> {
    let ImageCommand::Build(args) = command;
    if args.format == Form::Netboot && (args.ignition.is_some() || !args.arguments.is_empty()) {
        bail!(
            "a machine that boots over the network gets its Ignition config and kernel arguments from the helper; \
             choose --format raw, qcow2 or iso to carry them"
        );
    }
    let contents = Contents::new(args.ignition.as_deref(), &args.arguments)?;
    let format = match args.format {
        Form::Netboot => Format::Netboot,
        Form::Raw => Format::Raw,
        Form::Qcow2 => Format::Qcow2,
        Form::Iso => Format::Iso,
    };
    let say = |text: &str| eprintln!("{text}");
    let path = build(&default_cache(), format, &contents, args.output.as_deref(), &say).await?;
    match args.shown {
        lab::Format::Table => println!("{}", path.display()),
        lab::Format::Json => {
            let form = args.format.to_possible_value().map(|form| form.get_name().to_string());
            println!("{:#}", serde_json::json!({ "format": form, "path": path }));
        }
    }
    Ok(())
}
