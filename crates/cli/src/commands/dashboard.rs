//! `seedling dashboard`: a page that shows a lab's bring-up live, or replays it.

use super::lab::{Name, say};
use super::log::interrupted;
use anyhow::{Context, Result};
use clap::Args;
use seedling_dashboard::gate::{self, Token};
use seedling_dashboard::story::story;
use seedling_dashboard::{Live, read_once, record, serve};
use seedling_lab::Labs;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

#[derive(Args)]
pub(crate) struct DashboardArgs {
    #[command(flatten)]
    lab: Name,
    /// Where to serve it; on any address but loopback only whoever has the printed URL, with its token, may see it
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Write one HTML file that replays the bring-up without a server, instead of serving; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    record: Option<PathBuf>,
}

pub(crate) async fn run(args: DashboardArgs) -> Result<()> {
    let labs = Labs::from_env();
    let lab = labs.open(&args.lab.name)?;
    if let Some(file) = args.record {
        let page = record(&story(&read_once(&lab).await), seedling_lab::probe::now());
        return match file.as_os_str() == "-" {
            true => {
                print!("{page}");
                Ok(())
            }
            false => std::fs::write(&file, page).with_context(|| file.display().to_string()),
        };
    }
    let token = Token::for_address(args.listen).context("no random number for the token")?;
    let epoch = gate::random().context("no random number")?[..12].to_string();
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another with --listen", args.listen))?;
    let at = listener.local_addr()?;
    match &token {
        None => println!("http://{at}/"),
        Some(token) => println!("http://{at}/?token={}", token.text()),
    }
    say("read-only; ends with Ctrl-C");
    let live = Live::follow(labs, &args.lab.name, epoch);
    tokio::select! {
        served = serve(listener, live, token) => Ok(served?),
        () = interrupted() => Ok(()),
    }
}
