//! The binary `seedling`: parse, dispatch, exit code. One thin file a command; the logic is in the other crates.

mod commands;
mod conditions;
mod groups;
mod usage;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{
    analyze, certs, chaos, completion, create, csr, dashboard, destroy, dist, docs, etcd, explain, gather,
    graph, helper, image, init, kubectl, lab, node, node_reissue, operator, preflight, probe, release, stage,
    status, timeline, verify, version, wait_for,
};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Grows a Kubernetes cluster from nothing, the way OpenShift does.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad install-config or hosts file, 4 infrastructure, 5 bootstrap failed,
/// 6 install failed, 7 operators unstable, 8 interrupted, 9 preflight or `helper check` found problems.
#[derive(Parser)]
#[command(name = "seedling", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the files a cluster is installed from: manifests, Ignition configs, kubeconfig
    #[command(subcommand)]
    Create(create::CreateCommand),
    /// Check DNS, balancer, addresses, release, certificates and machines before anything boots; exit 9 if something is wrong
    Preflight(preflight::PreflightArgs),
    /// Explain a stage, component, certificate, port, file, condition, command or field of the install-config
    Explain(explain::ExplainArgs),
    /// Write an install-config.yaml to start from, with a comment on every field
    Init(init::InitArgs),
    /// Show when certificates expire, renew them, or recover a cluster whose certificates have expired
    #[command(subcommand)]
    Certs(certs::CertsCommand),
    /// On a master: back up etcd, restore a backup, continue after the other masters are lost, or make room
    #[command(subcommand)]
    Etcd(etcd::EtcdCommand),
    /// Not supported: `create` makes nothing outside of its directory; for openshift-install's callers
    #[command(subcommand, hide = true)]
    Destroy(destroy::DestroyCommand),
    /// Say why an installation failed: the cause, its evidence and the next step, from a log bundle, a lab or a message
    Analyze(analyze::AnalyzeArgs),
    /// Pack what explains a failed installation into one archive without secrets
    #[command(subcommand)]
    Gather(gather::GatherCommand),
    /// Print a completion script for your shell
    Completion(completion::CompletionArgs),
    /// Print the graph of assets: which file is made from which, for Graphviz
    Graph,
    /// Build the release (images, node software, manifests), load it from a file, or list its contents
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// Build what real machines boot: for the network, as a disk image or as an ISO
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Run whole clusters on this machine: machines are containers in network namespaces of their own
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// Wait until a cluster's bootstrap or installation is complete, or a machine has joined
    #[command(subcommand)]
    WaitFor(wait_for::WaitForCommand),
    /// Write to and read from the API without retries, and report failed requests and lost writes
    Probe(probe::ProbeArgs),
    /// Break processes, machines, networks and disks while clusters are installed, and check that nothing is lost
    #[command(subcommand)]
    Chaos(chaos::ChaosCommand),
    /// Show how far a lab is: machines, stages, etcd's members, operators, what is awaited, the last error
    Status(status::StatusArgs),
    /// Check that a cluster works, from outside and on each node, and show the evidence
    Verify(verify::VerifyArgs),
    /// Show how long each step of a lab's installation took, with the critical path marked
    Timeline(timeline::TimelineArgs),
    /// Show a lab's bring-up on a web page: live, or replayed at any speed
    Dashboard(dashboard::DashboardArgs),
    /// List certificate signing requests: who asked, whether it was approved, and why; approve them by hand
    Csr(csr::CsrArgs),
    /// Add or remove a machine, switch it on or off, let a reinstalled one join again, or show the journal of this machine
    #[command(name = "node", subcommand)]
    Machine(node_reissue::MachineCommand),
    /// List the stages of the bootstrap node, or check one there and show the evidence
    #[command(subcommand)]
    Stage(stage::StageCommand),
    /// Make the files of one such stage, from an asset directory or a copy of /opt/openshift
    Render(stage::RenderArgs),
    /// Run the release's kubectl with a lab's kubeconfig
    Kubectl(kubectl::KubectlArgs),
    /// Run the servers machines boot from (DHCP, DNS, TFTP, HTTP, registry, load balancer), check them, export them
    #[command(subcommand)]
    Helper(helper::HelperCommand),
    /// Show the version of this program and of its release
    Version(version::VersionArgs),
    /// Write the Debian package, the release archive, their checksums and their SPDX document (in a checkout)
    #[command(hide = true)]
    Dist(dist::DistArgs),
    /// Write the generated pages of the documentation
    #[command(hide = true)]
    Docs(docs::DocsArgs),
    #[command(flatten)]
    Node(node::NodeCommand),
    /// Run an operator (inside the cluster)
    #[command(hide = true)]
    Operator(operator::OperatorArgs),
}

fn main() -> ExitCode {
    end_quietly_when_nobody_reads();
    let cli = match parse(usage::arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    start_logging();
    // The one crypto provider, before anything speaks TLS.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return failed(&e.into()),
    };
    let ended = runtime.block_on(async {
        let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
        match cli.command {
            Command::Create(command) => create::run(command),
            Command::Destroy(command) => Ok(destroy::run(command)),
            Command::Analyze(args) => analyze::run(args).await,
            Command::Gather(command) => gather::run(command).await,
            Command::Completion(args) => {
                completion::run(&args, &mut Cli::command());
                Ok(ExitCode::SUCCESS)
            }
            Command::Explain(args) => explain::run(&args),
            Command::Init(args) => done(init::run(&args)),
            Command::Certs(command) => certs::run(command).await,
            Command::Etcd(command) => done(etcd::run(command).await),
            Command::Graph => {
                graph::run();
                Ok(ExitCode::SUCCESS)
            }
            Command::Release(command) => done(release::run(command).await),
            Command::Image(command) => done(image::run(command).await),
            Command::Lab(command) => done(lab::run(command).await),
            Command::WaitFor(command) => Ok(wait_for::run(command).await),
            Command::Probe(args) => probe::run(args).await,
            Command::Chaos(command) => chaos::run(command).await,
            Command::Preflight(args) => preflight::run(args).await,
            Command::Status(args) => done(status::run(args).await),
            Command::Verify(args) => verify::run(args).await,
            Command::Timeline(args) => done(timeline::run(args)),
            Command::Dashboard(args) => done(dashboard::run(args).await),
            Command::Csr(args) => done(csr::run(args).await),
            Command::Machine(command) => done(node_reissue::run(command).await),
            Command::Stage(command) => stage::run(command).await,
            Command::Render(args) => done(stage::render_stage(&args).await),
            Command::Kubectl(args) => kubectl::run(args),
            Command::Helper(command) => helper::run(command).await,
            Command::Version(args) => done(version::run(args)),
            Command::Dist(args) => done(dist::run(args, Cli::command()).await),
            Command::Docs(args) => done(docs::run(&args)),
            Command::Node(command) => done(node::run(command).await),
            Command::Operator(args) => done(operator::run(args).await),
        }
    });
    // What still waits for a blocking read must not hold the end up.
    runtime.shutdown_background();
    ended.unwrap_or_else(|e| failed(&e))
}

/// As `Parser::try_parse_from`, with help in groups.
fn parse(arguments: Vec<std::ffi::OsString>) -> Result<Cli, clap::Error> {
    let mut command = groups::grouped(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// `seedling … | head`: the reader has what it wanted. Writing on fails, and `println!` knows only panic.
fn end_quietly_when_nobody_reads() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>();
        if said.is_some_and(|s| s.starts_with("failed printing to stdout") && s.contains("Broken pipe")) {
            std::process::exit(0);
        }
        otherwise(panic);
    }));
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", seedling_cluster::chain(error.as_ref()));
    match error.downcast_ref::<seedling_lab::LabError>() {
        Some(seedling_lab::LabError::Preflight(_)) => ExitCode::from(4),
        // bootkube.service is not started again after it.
        _ if error.downcast_ref().is_some_and(seedling_bootkube::Error::is_refusal) => ExitCode::from(5),
        _ => ExitCode::FAILURE,
    }
}

/// To stderr: stdout is data. The journal and the runtime add the time themselves.
fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SEEDLING_LOG").unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new(
            "info,hyper=warn,kube_client=off,kube_runtime=warn,tower=warn,rustls=warn",
        )
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .compact()
        .init();
}
