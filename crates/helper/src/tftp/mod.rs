//! TFTP, read only: firmware fetches its boot loader here, and PXELINUX everything. Machines of the inventory get the boot image's files
//! by their plain names, and each its own menu; nobody else gets anything.

pub mod packet;
pub mod transfer;

use crate::boot::{image_file, script};
use crate::limits::{Full, Slot};
use crate::{Context, HelperError, net};
use packet::{Code, Heard, Options, Request};
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host, ports};
use std::fs::File;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::time::timeout_at;
use transfer::{Step, Transfer, cut};

/// A file is read in pieces of this size, each a trip to another thread.
const PIECE: u64 = 1 << 20;
const LONGEST_PACKET: usize = 2048;

pub fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let config = context.config();
    let socket = match &config.boot {
        Some(_) => Some(net::udp("TFTP", config.address, ports::TFTP, None)?),
        None => None,
    };
    Ok(net::or_idle(socket.map(|socket| serve(socket, context.clone()))))
}

async fn serve(socket: UdpSocket, context: Context) {
    let mut buffer = [0; LONGEST_PACKET];
    loop {
        let (length, remote) = net::receive(&socket, &mut buffer).await;
        let heard = packet::parse(&buffer[..length]);
        let refusal = match heard {
            Some(Heard::Read(request)) => begin(&context, request, remote).err(),
            Some(Heard::Write) => Some((Code::Refused, "nothing is written here")),
            // What belongs to a transfer goes to that one's own port.
            _ => None,
        };
        if let Some((code, why)) = refusal {
            let _ = socket.send_to(&packet::error(code, why), remote).await;
        }
    }
}

/// The transfer goes on by itself; what is refused is said and logged.
fn begin(context: &Context, request: Request, remote: SocketAddr) -> Result<(), (Code, &'static str)> {
    let config = context.config();
    let host = config.inventory.by_address(net::ip(remote));
    let log = Log {
        context: context.clone(),
        file: request.file.clone(),
        remote: net::ip(remote),
        host: host.cloned(),
    };
    let begun = (|| {
        let host = host.ok_or((Code::Refused, "no machine of the inventory has this address"))?;
        if !request.octet {
            return Err((Code::Illegal, "only mode octet (binary) is served"));
        }
        let content = find(context, &config, host, &request.file).ok_or((Code::NotFound, "no such file"))?;
        let slot = context.limits.tftp.take(remote.ip(), Instant::now()).map_err(|full| {
            tell(context, log.remote, full);
            (Code::Undefined, "too many transfers; try again")
        })?;
        Ok((content, slot))
    })();
    match begun {
        Ok((content, slot)) => {
            tokio::spawn(transfer(content, request.options, remote, config.address, log, slot));
            Ok(())
        }
        Err((code, why)) => {
            log.say(0, if code == Code::NotFound { "not found".into() } else { format!("refused: {why}") });
            Err((code, why))
        }
    }
}

fn tell(context: &Context, remote: IpAddr, full: Full) {
    if let Full { say: Some(connections), reason } = full {
        let service = context.limits.tftp.service.into();
        context.events.send(HelperEventKind::Limited { service, remote, connections, reason });
    }
}

enum Content {
    Text(Vec<u8>),
    File(Arc<File>, u64),
}

/// Firmware writes names in its own ways: with a slash before, or with slashes the other way round.
fn plain(name: &str) -> String {
    name.replace('\\', "/").trim_start_matches(['/', '.']).to_string()
}

fn find(context: &Context, config: &HelperConfig, host: &Host, name: &str) -> Option<Content> {
    let boot = config.boot_of(&host.name)?;
    let name = plain(name);
    if let Some(mac) = script::menu_of(&name) {
        let own = mac.eq_ignore_ascii_case(&host.mac);
        let menu = || context.boots.give(config, host, |boot, next| boot.menu(next));
        return own.then(menu).flatten().map(|menu| Content::Text(menu.into_bytes()));
    }
    let file = File::open(image_file(boot, &name)?).ok()?;
    let size = file.metadata().ok()?.len();
    Some(Content::File(Arc::new(file), size))
}

struct Log {
    context: Context,
    file: String,
    remote: IpAddr,
    host: Option<Host>,
}

impl Log {
    fn say(&self, bytes: u64, status: String) {
        let word = if status == "ok" { "ok" } else { "failed" };
        self.context.stats.add("seedling_helper_tftp_transfers_total", "status", word);
        self.context.events.send(HelperEventKind::Tftp {
            file: self.file.clone(),
            remote: self.remote,
            host: self.host.as_ref().map(|host| host.name.clone()),
            bytes,
            status,
        });
    }
}

async fn transfer(content: Content, wishes: Options, remote: SocketAddr, here: IpAddr, log: Log, slot: Slot) {
    let _slot = slot;
    let size = match &content {
        Content::Text(text) => text.len() as u64,
        Content::File(_, size) => *size,
    };
    let (mut transfer, granted) = Transfer::new(size, &wishes);
    let ended = match net::udp("TFTP", here, 0, None) {
        Ok(socket) => match socket.connect(remote).await {
            Ok(()) => carry(&socket, Pieces::new(content), &mut transfer, &granted).await,
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    };
    log.say(transfer.delivered(), ended.map_or_else(|why| why, |()| "ok".into()));
}

async fn carry(
    socket: &UdpSocket,
    mut pieces: Pieces,
    transfer: &mut Transfer,
    granted: &Options,
) -> Result<(), String> {
    let mut step = transfer.start();
    let mut buffer = [0; LONGEST_PACKET];
    let mut deadline = tokio::time::Instant::now();
    loop {
        match step {
            Step::Propose => send(socket, &packet::options(granted)).await?,
            Step::Send { from, to } => {
                for block in from..=to {
                    let bytes = pieces.read(transfer.bytes(block)).await.map_err(|e| e.to_string());
                    let bytes = match bytes {
                        Ok(bytes) => bytes,
                        Err(why) => {
                            let _ =
                                socket.send(&packet::error(Code::Undefined, "cannot read the file")).await;
                            return Err(why);
                        }
                    };
                    send(socket, &packet::data(cut(block), bytes)).await?;
                }
            }
            Step::Wait => {}
            Step::Done => return Ok(()),
            Step::GiveUp => return Err("the machine says nothing any more".into()),
        }
        if step != Step::Wait {
            deadline = tokio::time::Instant::now() + Duration::from_secs(transfer.patience());
        }
        step = match timeout_at(deadline, socket.recv(&mut buffer)).await {
            Err(_) => transfer.silence(),
            // Nobody listens there any more.
            Ok(Err(error)) => return Err(format!("the machine is gone: {error}")),
            Ok(Ok(length)) => match packet::parse(&buffer[..length]) {
                Some(Heard::Ack(block)) => transfer.heard(block),
                Some(Heard::Error(_, why)) => return Err(format!("the machine stopped it: {why}")),
                _ => Step::Wait,
            },
        };
    }
}

async fn send(socket: &UdpSocket, packet: &[u8]) -> Result<(), String> {
    socket.send(packet).await.map(drop).map_err(|error| format!("cannot send: {error}"))
}

/// The piece of the content that is being sent.
struct Pieces {
    content: Content,
    at: u64,
    piece: Vec<u8>,
}

impl Pieces {
    fn new(content: Content) -> Self {
        Self { content, at: 0, piece: Vec::new() }
    }

    async fn read(&mut self, wanted: std::ops::Range<u64>) -> std::io::Result<&[u8]> {
        let short = || std::io::Error::other("the file is shorter than it was");
        let range = |from: u64| -> Option<std::ops::Range<usize>> {
            let start = usize::try_from(wanted.start.checked_sub(from)?).ok()?;
            Some(start..start + usize::try_from(wanted.end - wanted.start).ok()?)
        };
        let (file, size) = match &self.content {
            Content::Text(text) => return range(0).and_then(|range| text.get(range)).ok_or_else(short),
            Content::File(file, size) => (file.clone(), *size),
        };
        if range(self.at).is_none_or(|range| range.end > self.piece.len()) {
            let length = usize::try_from(PIECE.min(size - wanted.start)).map_err(|_| short())?;
            let from = wanted.start;
            let read = move || {
                let mut piece = vec![0; length];
                file.read_exact_at(&mut piece, from).map(|()| piece)
            };
            self.piece = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??;
            self.at = from;
        }
        range(self.at).and_then(|range| self.piece.get(range)).ok_or_else(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_firmware_writes_them() {
        let table = [
            ("undionly.kpxe", "undionly.kpxe"),
            ("/undionly.kpxe", "undionly.kpxe"),
            ("\\ipxe.efi", "ipxe.efi"),
            ("./pxelinux.cfg\\01-52-54", "pxelinux.cfg/01-52-54"),
            ("../../etc/passwd", "etc/passwd"),
            ("a/../../b", "a/../../b"),
        ];
        for (name, want) in table {
            assert_eq!(plain(name), want, "{name}");
        }
    }
}
