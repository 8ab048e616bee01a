//! rtnetlink: messages, and a socket that sends one and reads the answer.

use crate::fault::{Fault, fault, os};
use crate::sys;
use dragstrip_qdisc::netlink::Writer;
pub use dragstrip_qdisc::netlink::{Attributes, long, word};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;

/// Flags of a request (linux/netlink.h).
pub mod flag {
    pub const REQUEST: u16 = 1;
    pub const ACK: u16 = 4;
    pub const ECHO: u16 = 8;
    pub const REPLACE: u16 = 0x100;
    pub const EXCL: u16 = 0x200;
    pub const CREATE: u16 = 0x400;
    /// All there are.
    pub const DUMP: u16 = 0x300;
}

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// A message under construction: netlink's header, then what is written to it.
#[derive(Debug)]
pub struct Message(Writer);

impl Message {
    /// A message of this type; `family` is the fixed part after the netlink header.
    pub fn new(kind: u16, flags: u16, family: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | flag::REQUEST).to_ne_bytes());
        bytes.extend_from_slice(family);
        Self(Writer::behind(&bytes))
    }

    /// Returns the bytes of the message, with its length and number.
    pub fn finish(self, sequence: u32) -> Vec<u8> {
        let mut bytes = self.0.into_bytes();
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        bytes
    }
}

impl Deref for Message {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.0
    }
}

impl DerefMut for Message {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.0
    }
}

/// A receiver of rtnetlink requests: a kernel behind its [`Socket`], or a table of a test.
pub trait Rtnetlink {
    /// Sends a request and waits for its acknowledgement; returns the payloads of all answers before it
    /// ([`flag::DUMP`]).
    fn ask_all(&mut self, message: Message) -> Result<Vec<Vec<u8>>, Fault>;

    /// Sends a request and waits for its acknowledgement; returns the payload of the last answer before it.
    fn ask(&mut self, message: Message) -> Result<Vec<u8>, Fault> {
        Ok(self.ask_all(message)?.pop().unwrap_or_default())
    }
}

/// A socket in the namespace of the thread that opened it; it stays there.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    /// For links, addresses, routes and disciplines.
    pub fn new() -> Result<Self, Fault> {
        Self::of(libc::NETLINK_ROUTE)
    }

    /// For questions of this family.
    pub fn of(family: i32) -> Result<Self, Fault> {
        let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, family)?;
        const NETLINK_EXT_ACK: i32 = 11;
        sys::set_option(&fd, libc::SOL_NETLINK, NETLINK_EXT_ACK, &1_i32, "NETLINK_EXT_ACK")?;
        Ok(Self { fd, sequence: 0 })
    }
}

impl Rtnetlink for Socket {
    fn ask_all(&mut self, message: Message) -> Result<Vec<Vec<u8>>, Fault> {
        self.sequence += 1;
        let bytes = message.finish(self.sequence);
        if sys::write(&self.fd, &bytes) != Some(bytes.len()) {
            return Err(os("netlink"));
        }
        let mut answers = Vec::new();
        loop {
            // The kernel has answered before its write(2) returned: nothing to wait for.
            let mut buffer = vec![0; 32_768];
            let Some(length) = sys::receive(&self.fd, &mut buffer) else {
                return Ok(answers);
            };
            let mut rest = &buffer[..length.min(buffer.len())];
            while let Some(size) = word(rest, 0).map(|size| size as usize) {
                if size < HEADER || size > rest.len() {
                    break;
                }
                let payload = &rest[HEADER..size];
                match u16::from_ne_bytes([rest[4], rest[5]]) {
                    NLMSG_ERROR => return refuse(payload).map(|()| answers),
                    NLMSG_DONE => return Ok(answers),
                    _ => answers.push(payload.to_vec()),
                }
                rest = &rest[size.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
}

/// An error message's number, as a fault with the kernel's own words where it gave some.
fn refuse(payload: &[u8]) -> Result<(), Fault> {
    let number = word(payload, 0).unwrap_or_default() as i32;
    if number == 0 {
        return Ok(());
    }
    let error = std::io::Error::from_raw_os_error(-number);
    let original = word(payload, 4).unwrap_or_default() as usize;
    // Behind the error: our own message's header or, without NLM_F_CAPPED, all of it; then attributes.
    let texts = [4 + HEADER, 4 + original]
        .into_iter()
        .filter_map(|start| payload.get(start..))
        .find_map(|rest| Attributes(rest).get(1).map(<[u8]>::to_vec));
    let words = texts.map(|text| String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned());
    fault(words.map_or(error.to_string(), |words| format!("{error} ({words})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_how_long_it_is() {
        let mut message = Message::new(1, 0, &[]);
        message.u32(7, 1).nest(2, |inside| {
            inside.text(1, "htb");
        });
        let bytes = message.finish(9);
        assert_eq!(word(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(word(&bytes, 8), Some(9));
        assert_eq!(Attributes(&bytes[HEADER..]).number(7), Some(1));
    }
}
