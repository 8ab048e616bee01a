//! TCP sockets of a network namespace, as its kernel lists them (sock_diag(7), `INET_DIAG`).

use crate::fault::Fault;
use crate::netlink::{Attributes, Message, Rtnetlink as _, Socket, flag, word};
use crate::side::Info;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// TCP states with a peer and a congestion control: all but TIME_WAIT, CLOSE, LISTEN and NEW_SYN_RECV.
const STATES: u32 = 0b1011_0011_1110;
/// Bytes of struct inet_diag_msg.
const MESSAGE: usize = 72;
/// Offset of struct inet_diag_sockid.
const NUMBERS: usize = 4;

/// Address and port of an end.
pub type End = (IpAddr, u16);

/// A TCP socket.
#[derive(Clone, Debug)]
pub struct TcpSocket {
    pub local: End,
    pub peer: End,
    /// Bytes that it holds and that are not acknowledged.
    pub queued_bytes: u32,
    /// Its number in the file system of sockets.
    pub inode: u32,
    pub info: Info,
    /// Name of its congestion control.
    pub cc: String,
}

/// Questions to the kernel of one namespace.
pub struct Sockets(Socket);

impl Sockets {
    /// Opens a socket for the namespace of this thread, in which it stays.
    pub fn open() -> Result<Self, Fault> {
        Socket::of(libc::NETLINK_SOCK_DIAG).map(Self)
    }

    /// All TCP sockets that have a peer.
    pub fn list(&mut self) -> Result<Vec<TcpSocket>, Fault> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
            // struct inet_diag_req_v2: family, protocol, extensions, padding, states, numbers of a socket.
            let mut request = vec![family as u8, libc::IPPROTO_TCP as u8, extensions, 0];
            request.extend(STATES.to_ne_bytes());
            request.extend([0; 48]);
            let message = Message::new(SOCK_DIAG_BY_FAMILY, flag::DUMP, &request);
            let answers = self.0.ask_all(message)?;
            sockets.extend(answers.iter().filter_map(|answer| read(answer)));
        }
        Ok(sockets)
    }
}

/// Reads struct inet_diag_msg and what is behind it.
fn read(answer: &[u8]) -> Option<TcpSocket> {
    let attributes = Attributes(answer.get(MESSAGE..)?);
    let is_ipv6 = i32::from(answer[0]) == libc::AF_INET6;
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes([answer[port], answer[port + 1]]);
        let octets: [u8; 16] = answer[address..address + 16].try_into().ok()?;
        let address: IpAddr = if is_ipv6 {
            Ipv6Addr::from(octets).to_canonical()
        } else {
            Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()
        };
        Some((address, port))
    };
    let cc = attributes.get(INET_DIAG_CONG).unwrap_or_default();
    Some(TcpSocket {
        local: end(NUMBERS, NUMBERS + 4)?,
        peer: end(NUMBERS + 2, NUMBERS + 20)?,
        queued_bytes: word(answer, 60)?,
        inode: word(answer, 68)?,
        info: Info::parse(attributes.get(INET_DIAG_INFO)?),
        cc: String::from_utf8_lossy(cc).trim_end_matches('\0').to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_of_this_machine_is_listed_with_its_state() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, _) = listener.accept().unwrap();
        client.write_all(&[0; 1000]).unwrap();
        let local = client.local_addr().unwrap();
        let list = Sockets::open().unwrap().list().unwrap();
        let socket = list.iter().find(|socket| socket.local == (local.ip(), local.port())).unwrap();
        assert_eq!(socket.peer.1, listener.local_addr().unwrap().port());
        assert!(socket.info.cwnd > 0 && socket.info.mss > 0 && !socket.info.handshake);
        assert!(!socket.cc.is_empty());
        assert!(socket.inode > 0);
    }
}
