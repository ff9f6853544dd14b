//! `seedling status`: a lab, or a cluster elsewhere, at a glance, once or live.

use super::elsewhere::Elsewhere;
use super::helper::here;
use super::lab::{Format, Name, Output};
use super::screen::{Event, Screen};
use anyhow::Result;
use clap::Args;
use seedling_lab::overview::{Site, elsewhere, lines, news};
use seedling_lab::{HelperStatus, Labs, Overview, overview, read_events};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// How often a live view looks again. A look at machines elsewhere is a log-in on each.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_ELSEWHERE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    lab: Name,
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// The helper's configuration, on its own machine: its events tell how far machines boot [default: /etc/seedling/helper.yaml]
    #[arg(long, value_name = "FILE", requires = "kubeconfig")]
    helper: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Keep looking: full screen in a terminal (q quits), else a line for each change
    #[arg(short, long)]
    watch: bool,
}

impl StatusArgs {
    async fn look(&self) -> Result<Overview> {
        match &self.elsewhere.kubeconfig {
            Some(kubeconfig) => self.look_elsewhere(kubeconfig).await,
            None => Ok(overview(&Labs::from_env().open(&self.lab.name)?).await?),
        }
    }

    async fn look_elsewhere(&self, kubeconfig: &Path) -> Result<Overview> {
        let (name, api) = seedling_cluster::named_in(kubeconfig)?;
        let helper = here(self.helper.clone())
            .map(|path| Ok::<_, anyhow::Error>((seedling_helper::load(&path)?, path)));
        let helper = helper.transpose()?;
        let hosts = match &helper {
            Some((config, _)) if !self.elsewhere.names_hosts() => config.inventory.hosts.clone(),
            _ => self.elsewhere.hosts(&seedling_cluster::connect(Some(kubeconfig)).await?).await?,
        };
        let seen = |(config, path): &(seedling_types::HelperConfig, PathBuf)| {
            (HelperStatus::here(path, config.address), read_events(&config.events))
        };
        let (kubeconfig, helper, shell) =
            (kubeconfig.to_path_buf(), helper.as_ref().map(seen), self.elsewhere.shell());
        Ok(elsewhere(Site { name, hosts, shell: &shell, api, kubeconfig, helper }).await)
    }

    fn pause(&self) -> Duration {
        if self.elsewhere.kubeconfig.is_some() { LOOK_ELSEWHERE } else { LOOK }
    }
}

pub(crate) async fn run(args: StatusArgs) -> Result<()> {
    let first = args.look().await?;
    if !args.watch {
        let now = seedling_lab::probe::now();
        let table = || lines(&first, now).iter().for_each(|line| println!("{}", line.trim_end()));
        args.output.print(&serde_json::to_value(&first)?, table);
        return Ok(());
    }
    let (tell, seen) = watch::channel(first);
    let format = args.output.output;
    // A lab that is made or removed meanwhile is looked at again.
    let looking = async move {
        loop {
            tokio::time::sleep(args.pause()).await;
            if let Ok(next) = args.look().await
                && tell.send(next).is_err()
            {
                return;
            }
        }
    };
    let looking = tokio::spawn(looking);
    let shown = match (format, std::io::stdout().is_terminal()) {
        (Format::Table, true) => on_screen(seen).await,
        (format, _) => by_line(seen, format).await,
    };
    looking.abort();
    shown
}

async fn on_screen(mut seen: watch::Receiver<Overview>) -> Result<()> {
    let mut screen = Screen::open()?;
    loop {
        let mut text = lines(&seen.borrow_and_update(), seedling_lab::probe::now());
        text.extend([String::new(), "q quits".into()]);
        screen.show(&text)?;
        tokio::select! {
            _ = seen.changed() => {}
            event = screen.event() => match event {
                Event::Quit => return Ok(()),
                Event::Resized => {}
            }
        }
    }
}

/// A line for each change; as JSON, the whole overview in a line.
async fn by_line(mut seen: watch::Receiver<Overview>, format: Format) -> Result<()> {
    let mut before = seen.borrow_and_update().clone();
    match format {
        Format::Json => println!("{}", serde_json::to_string(&before)?),
        Format::Table => {
            lines(&before, seedling_lab::probe::now()).iter().for_each(|l| println!("{}", l.trim_end()))
        }
    }
    loop {
        tokio::select! {
            changed = seen.changed() => changed?,
            () = super::log::interrupted() => return Ok(()),
        }
        let after = seen.borrow_and_update().clone();
        let news = news(&before, &after);
        match format {
            Format::Json if !news.is_empty() => println!("{}", serde_json::to_string(&after)?),
            Format::Json => {}
            Format::Table => news.iter().for_each(|line| println!("{} {line}", clock())),
        }
        before = after;
    }
}

fn clock() -> String {
    let now = time::OffsetDateTime::now_utc().time();
    format!("{:02}:{:02}:{:02}", now.hour(), now.minute(), now.second())
}
