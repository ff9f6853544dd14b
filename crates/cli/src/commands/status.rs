//! `seedling status`: a lab at a glance, once or live.

use super::lab::{Format, Name, Output};
use super::screen::{Event, Screen};
use anyhow::Result;
use clap::Args;
use seedling_lab::overview::{lines, news};
use seedling_lab::{Labs, Overview, overview};
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::watch;

/// How often a live view looks again.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    lab: Name,
    #[command(flatten)]
    output: Output,
    /// Keep looking: full screen in a terminal (q quits), else a line for each change
    #[arg(short, long)]
    watch: bool,
}

pub(crate) async fn run(args: StatusArgs) -> Result<()> {
    let lab = Labs::from_env().open(&args.lab.name)?;
    let first = overview(&lab).await?;
    if !args.watch {
        let now = seedling_lab::probe::now();
        let table = || lines(&first, now).iter().for_each(|line| println!("{}", line.trim_end()));
        args.output.print(&serde_json::to_value(&first)?, table);
        return Ok(());
    }
    let (tell, seen) = watch::channel(first);
    let name = args.lab.name.clone();
    // A lab that is made or removed meanwhile is looked at again.
    let looking = async move {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Ok(lab) = Labs::from_env().open(&name)
                && let Ok(next) = overview(&lab).await
                && tell.send(next).is_err()
            {
                return;
            }
        }
    };
    let looking = tokio::spawn(looking);
    let shown = match (args.output.output, std::io::stdout().is_terminal()) {
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
