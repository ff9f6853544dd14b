//! Wake-on-LAN: a packet with a machine's MAC address sixteen times, to everybody in the machine's network.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use thiserror::Error;

/// Discard: nobody answers, and firmware looks at the contents only.
const PORT: u16 = 9;
/// A packet may be lost; one that comes twice does nothing more.
const TIMES: usize = 3;

#[derive(Debug, Error)]
pub enum WakeError {
    #[error("{0:?} is no MAC address")]
    Mac(String),
    #[error(
        "this machine has no card in the network of {0}: a packet to wake it would not arrive; run this on a machine in that network, \
         or name its broadcast address with --broadcast"
    )]
    NotHere(Ipv4Addr),
    #[error("cannot send to {0}: {1}")]
    Send(Ipv4Addr, io::Error),
    #[error("cannot read the routes of this machine: {0}")]
    Routes(io::Error),
}

/// Sends it, to a network's broadcast address.
pub fn wake(mac: &str, broadcast: Ipv4Addr) -> Result<(), WakeError> {
    let packet = packet(mac).ok_or_else(|| WakeError::Mac(mac.into()))?;
    let sent = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_broadcast(true)?;
        (0..TIMES).try_for_each(|_| socket.send_to(&packet, (broadcast, PORT)).map(drop))
    };
    sent().map_err(|e| WakeError::Send(broadcast, e))
}

/// Of the network in which both this machine and the other one are.
pub fn broadcast_for(address: Ipv4Addr) -> Result<Ipv4Addr, WakeError> {
    let routes = std::fs::read_to_string("/proc/net/route").map_err(WakeError::Routes)?;
    connected(&routes, address).ok_or(WakeError::NotHere(address))
}

/// By the kernel's table: networks without a gateway are those of its own cards. The smallest counts.
fn connected(routes: &str, address: Ipv4Addr) -> Option<Ipv4Addr> {
    let networks = routes.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // As the kernel keeps them in memory: the first byte of the address is the lowest of the number.
        let number = |at: usize| Some(u32::from_str_radix(fields.get(at)?, 16).ok()?.swap_bytes());
        let (network, gateway, mask) = (number(1)?, number(2)?, number(7)?);
        (gateway == 0 && mask != 0 && u32::from(address) & mask == network).then_some((mask, network))
    });
    networks.max().map(|(mask, network)| Ipv4Addr::from(network | !mask))
}

fn packet(mac: &str) -> Option<Vec<u8>> {
    let parts =
        mac.split([':', '-']).map(|part| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2));
    let bytes = parts.collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() == 6)?;
    Some([0xff; 6].into_iter().chain(bytes.repeat(16)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth1\t0064A8C0\t00000000\t0001\t0\t0\t0\t00FEFFFF\t0\t0\t0\n";

    #[test]
    fn the_packet_is_the_machines_address_sixteen_times() {
        let packet = packet("52:54:00:5E:ed:10").unwrap_or_default();
        assert_eq!(packet.len(), 102);
        assert_eq!(packet[..6], [0xff; 6]);
        assert!(packet[6..].chunks(6).all(|part| part == [0x52, 0x54, 0, 0x5e, 0xed, 0x10]));
        for bad in ["", "52:54:00:5e:ed", "52:54:00:5e:ed:1", "52:54:00:5e:ed:xx"] {
            assert_eq!(super::packet(bad), None, "{bad}");
        }
    }

    #[test]
    fn it_goes_where_the_machine_is() {
        for (address, broadcast) in [
            ([192, 168, 1, 7], Some([192, 168, 1, 255])),
            ([192, 168, 101, 7], Some([192, 168, 101, 255])),
            ([10, 0, 0, 1], None),
        ] {
            assert_eq!(connected(ROUTES, address.into()), broadcast.map(Into::into), "{address:?}");
        }
    }
}
