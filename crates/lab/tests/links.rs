//! Links that are cut, one way and both, and healed, in network namespaces of the test's own. As root; no machine is booted.

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CloneFlags, setns};
use seedling_lab::chaos::{Fault, Loss, Party, plan, rules};
use seedling_machines::network::{CARD, Network, namespace_path};
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

const HELPER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 100, 1));

/// The test's namespaces; gone when it is dropped, also by a panic.
struct Lan {
    network: Network,
    nodes: Vec<&'static str>,
}

impl Drop for Lan {
    fn drop(&mut self) {
        let nodes = self.nodes.iter().map(|node| self.network.node_namespace(node));
        for namespace in nodes.chain([self.network.namespace()]) {
            let _ = Command::new("ip").args(["netns", "delete", &namespace]).status();
        }
    }
}

fn address(node: &str) -> IpAddr {
    if node == "a" { [192, 168, 100, 11].into() } else { [192, 168, 100, 12].into() }
}

fn party(node: &str) -> Party {
    match node {
        "helper" => Party { node: None, address: HELPER },
        node => Party { node: Some(node.into()), address: address(node) },
    }
}

impl Lan {
    async fn new() -> Result<Self> {
        let network = Network::of_lab(&format!("links-{}", std::process::id()));
        let lan = Self { network, nodes: vec!["a", "b"] };
        lan.network.ensure_bridge(&[(HELPER, 24)]).await?;
        for (node, mac) in [("a", "52:54:00:5e:ed:a1"), ("b", "52:54:00:5e:ed:b1")] {
            lan.network.ensure_node(node, mac).await?;
            let namespace = lan.network.node_namespace(node);
            let address = format!("{}/24", address(node));
            for command in [&["address", "add", &address, "dev", CARD][..], &["link", "set", CARD, "up"]] {
                let status = Command::new("ip").args(["-n", &namespace]).args(command).status()?;
                ensure!(status.success(), "ip {command:?}");
            }
        }
        Ok(lan)
    }

    fn namespace(&self, node: &str) -> String {
        if node == "helper" { self.network.namespace() } else { self.network.node_namespace(node) }
    }

    /// A socket of somebody: made by a thread that goes there and ends.
    fn socket(&self, node: &str, port: u16) -> Result<UdpSocket> {
        let namespace = std::fs::File::open(namespace_path(&self.namespace(node)))?;
        let address = party(node).address;
        let made = std::thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            UdpSocket::bind((address, port))
        });
        let socket = made.join().map_err(|_| anyhow::anyhow!("the thread panicked"))??;
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        Ok(socket)
    }

    /// Whether a datagram that `from` sends arrives at `to`: nothing has to come back.
    fn arrives(&self, from: &str, to: &str) -> Result<bool> {
        let (sender, receiver) = (self.socket(from, 0)?, self.socket(to, 9)?);
        sender.send_to(b"x", (party(to).address, 9)).context("it notices")?;
        Ok(receiver.recv_from(&mut [0; 8]).is_ok())
    }

    async fn lose(&self, losses: &[Loss]) -> Result<()> {
        for loss in losses {
            self.network.load_rules(loss.at.node.as_deref(), &rules(loss)).await?;
        }
        Ok(())
    }

    async fn heal(&self) -> Result<()> {
        for node in [Some("a"), Some("b"), None] {
            self.network.load_rules(node, seedling_lab::chaos::HEALED).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn links_break_as_planned_and_heal() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("this test makes network namespaces: run it as root");
    }
    let lan = Lan::new().await?;
    let all = [("a", "b"), ("b", "a"), ("a", "helper"), ("helper", "a")];
    // Who is struck is always `a`; which ways are left, in the order of `all`.
    for (fault, peers, open) in [
        (Fault::CutLink, vec!["b"], [false, false, true, true]),
        (Fault::CutLink, vec!["helper"], [true, true, false, false]),
        (Fault::Deaf, vec!["b", "helper"], [true, false, true, false]),
        (Fault::Mute, vec!["b", "helper"], [false, true, false, true]),
    ] {
        let peers: Vec<_> = peers.into_iter().map(party).collect();
        lan.lose(&plan(fault, &party("a"), &peers)).await?;
        for ((from, to), want) in all.into_iter().zip(open) {
            ensure!(lan.arrives(from, to)? == want, "{fault:?}: {from} to {to}, wanted {want}");
        }
        // Twice: who heals does not know what was broken.
        lan.heal().await?;
        lan.heal().await.context("again")?;
    }
    for (from, to) in all {
        ensure!(lan.arrives(from, to)?, "healed: {from} to {to}");
    }
    // A share is lost, and not everything.
    lan.lose(&plan(Fault::Lossy, &party("a"), &[party("b")])).await?;
    let (sender, receiver) = (lan.socket("a", 0)?, lan.socket("b", 9)?);
    let mut arrived = 0;
    for _ in 0..200 {
        sender.send_to(b"x", (address("b"), 9))?;
    }
    while receiver.recv_from(&mut [0; 8]).is_ok() {
        arrived += 1;
    }
    ensure!((90..190).contains(&arrived), "{arrived} of 200 arrived, 140 should");
    lan.heal().await
}
