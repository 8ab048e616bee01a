//! rtnetlink: messages, attributes, and a socket that sends one and reads the answer.

use crate::fault::{Fault, fault, os};
use crate::sys;
use std::os::fd::OwnedFd;

/// Flags of a request (linux/netlink.h).
pub mod flag {
    pub const REQUEST: u16 = 1;
    pub const ACK: u16 = 4;
    pub const ECHO: u16 = 8;
    pub const REPLACE: u16 = 0x100;
    pub const EXCL: u16 = 0x200;
    pub const CREATE: u16 = 0x400;
}

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;

/// A message under construction.
#[derive(Debug)]
pub struct Message(Vec<u8>);

impl Message {
    /// A message of this type; `family` is the fixed part behind the netlink header.
    pub fn new(kind: u16, flags: u16, family: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | flag::REQUEST).to_ne_bytes());
        bytes.extend_from_slice(family);
        let mut message = Self(bytes);
        message.pad();
        message
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute of raw bytes.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.pad();
        self
    }

    /// Adds bytes that are no attribute (the fixed part of a message inside another).
    pub fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Adds a text, with its final zero.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Adds a 32-bit number.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a 64-bit number.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that holds what `inside` adds.
    pub fn nest(&mut self, kind: u16, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind, &[]);
        inside(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// What was added so far, without the netlink header.
    pub fn attributes(&self) -> &[u8] {
        &self.0[HEADER..]
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Attributes of a received message.
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The first attribute of this kind.
    pub fn get(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.0;
        while rest.len() >= 4 {
            let length = u16::from_ne_bytes([rest[0], rest[1]]) as usize;
            let kind = u16::from_ne_bytes([rest[2], rest[3]]) & 0x3fff; // without the nesting flags
            if length < 4 || length > rest.len() {
                return None;
            }
            if kind == wanted {
                return Some(&rest[4..length]);
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
        None
    }

    /// The attributes inside the first one of this kind.
    pub fn inside(&self, wanted: u16) -> Option<Self> {
        self.get(wanted).map(Attributes)
    }
}

/// A native-endian 32-bit number at an offset, if there is one.
pub fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

/// A native-endian 64-bit number at an offset, if there is one.
pub fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    let (low, high) = (word(bytes, offset)?, word(bytes, offset + 4)?);
    Some(u64::from(high) << 32 | u64::from(low))
}

/// A socket in the namespace of the thread that opened it; it stays there.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

impl Socket {
    pub fn new() -> Result<Self, Fault> {
        let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        const NETLINK_EXT_ACK: i32 = 11;
        sys::set_option(&fd, libc::SOL_NETLINK, NETLINK_EXT_ACK, &1_i32, "NETLINK_EXT_ACK")?;
        Ok(Self { fd, sequence: 0 })
    }

    /// Sends a message and waits for the kernel's yes or no; gives the last answer's payload that came before it.
    pub fn ask(&mut self, message: Message) -> Result<Vec<u8>, Fault> {
        self.sequence += 1;
        let bytes = message.finish(self.sequence);
        if sys::write(&self.fd, &bytes) != Some(bytes.len()) {
            return Err(os("netlink"));
        }
        let mut answer = Vec::new();
        loop {
            // The kernel has answered before its write(2) returned: nothing to wait for.
            let mut buffer = vec![0; 32_768];
            let Some(length) = sys::receive(&self.fd, &mut buffer) else {
                return Ok(answer);
            };
            let mut rest = &buffer[..length.min(buffer.len())];
            while let Some(size) = word(rest, 0).map(|size| size as usize) {
                if size < HEADER || size > rest.len() {
                    break;
                }
                let payload = &rest[HEADER..size];
                if u16::from_ne_bytes([rest[4], rest[5]]) == NLMSG_ERROR {
                    refuse(payload)?;
                    return Ok(answer);
                }
                answer = payload.to_vec();
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
    let told = [4 + HEADER, 4 + original]
        .into_iter()
        .filter_map(|start| payload.get(start..))
        .find_map(|rest| Attributes(rest).get(1).map(<[u8]>::to_vec));
    let words = told.map(|text| String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned());
    fault(words.map_or(error.to_string(), |words| format!("{error} ({words})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_is_found_again() {
        let mut message = Message::new(1, 0, &[]);
        message.u32(7, 1).nest(2, |inside| {
            inside.text(1, "htb").u64(9, u64::MAX - 1);
        });
        let bytes = message.finish(1);
        assert_eq!(word(&bytes, 0), Some(bytes.len() as u32));
        let attributes = Attributes(&bytes[HEADER..]);
        assert_eq!(attributes.get(7), Some(&1_u32.to_ne_bytes()[..]));
        let inside = attributes.inside(2).unwrap();
        assert_eq!(inside.get(1), Some(&b"htb\0"[..]));
        assert_eq!(inside.get(9).and_then(|value| long(value, 0)), Some(u64::MAX - 1));
        assert!(inside.get(3).is_none());
    }

    #[test]
    fn damaged_attributes_are_not_read() {
        assert!(Attributes(&[200, 0, 1, 0]).get(1).is_none());
        assert!(Attributes(&[0, 0, 1, 0]).get(1).is_none());
        assert!(Attributes(&[1]).get(1).is_none());
    }
}
