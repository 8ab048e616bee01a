//! Encryption of datagrams for captures.
//!
//! The endpoints exchange packets without a cipher, with room for its tags (`session.rs`). A capture has them as they would be on a
//! line: AES-128-GCM and header protection after RFC 9001, section 5, with secrets that the file tells. The stacks update their keys
//! once, after as many packets as they have drawn; in a capture the first keys hold to the end: at a queue packets of the new keys are
//! dropped before those of the old ones have left, and Wireshark decrypts nothing after such a change of order.

use crate::secrets::{Secret, Secrets};
use crate::seeds::CID_BYTES;
use crate::session::{SAMPLE_BYTES, TAG_BYTES};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockEncrypt, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;

/// Salt of the first packets' secrets (RFC 9001, section 5.2).
const INITIAL_SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// Bit of a long header (RFC 9000, section 17.2).
const LONG: u8 = 0x80;
/// Bit of the key phase in a short header (RFC 9000, section 17.3).
const KEY_PHASE: u8 = 0x04;
/// Bytes of a packet number at most; header protection samples behind as many.
const NUMBER_BYTES_MAX: usize = 4;

/// Space of packet numbers (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Initial,
    Handshake,
    Data,
}

/// Keys of one direction.
struct Keys {
    packet: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

impl Keys {
    fn new(secret: &Secret) -> Self {
        let key = |label| -> [u8; 16] { expanded(secret, label) };
        Self {
            packet: Aes128Gcm::new(&key("quic key").into()),
            iv: expanded(secret, "quic iv"),
            header: Aes128::new(&key("quic hp").into()),
        }
    }
}

/// HKDF-Expand-Label (RFC 8446, section 7.1) without a context.
fn expanded<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let mut info = vec![0, N as u8, 6 + label.len() as u8];
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    let mut bytes = [0; N];
    if let Ok(hkdf) = Hkdf::<Sha256>::from_prk(secret) {
        let _ = hkdf.expand(&info, &mut bytes); // N is far below the limit
    }
    bytes
}

/// State of one direction.
struct Direction {
    initial: Option<Keys>,
    handshake: Keys,
    data: Keys,
    /// The number after the largest that was sent, in each space.
    next_numbers: [u64; 3],
    /// Bytes of the connection IDs that this end has chosen.
    cid_bytes: usize,
}

/// Encrypts a connection's datagrams, in the order in which they were sent.
pub struct Protection {
    secrets: Secrets,
    /// The client's and the server's.
    directions: [Direction; 2],
}

impl std::fmt::Debug for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Protection").finish_non_exhaustive()
    }
}

/// Place of a packet within a datagram.
struct Place {
    space: Space,
    number_at: usize,
    end: usize,
}

impl Protection {
    /// The protection of the connection with this name in the run with this seed; `None`: this build has no QUIC stacks.
    #[must_use]
    pub fn new(seed: u64, connection: &str) -> Option<Self> {
        let secrets = Secrets::new(seed, connection);
        let directions = [0, 1].map(|end| Direction {
            initial: None,
            handshake: Keys::new(&secrets.handshake[end]),
            data: Keys::new(&secrets.application[end]),
            next_numbers: [0; 3],
            cid_bytes: CID_BYTES,
        });
        Some(Self { secrets, directions })
    }

    /// A log of the keys, for a program that decrypts the packets.
    #[must_use]
    pub fn key_log(&self) -> String {
        self.secrets.key_log()
    }

    /// Encrypts the packets of a datagram. What is no packet stays as it is.
    pub fn protect(&mut self, from_client: bool, datagram: &mut [u8]) {
        let mut start = 0;
        while let Some(place) = self.place(from_client, &datagram[start..]) {
            let end = start + place.end;
            self.protect_packet(from_client, &place, &mut datagram[start..end]);
            start = end;
        }
    }

    /// Reads a packet's header, and learns from it.
    fn place(&mut self, from_client: bool, bytes: &[u8]) -> Option<Place> {
        let first = *bytes.first()?;
        let peer = usize::from(from_client);
        if first & LONG == 0 {
            let number_at = 1 + self.directions[peer].cid_bytes;
            let place = Place { space: Space::Data, number_at, end: bytes.len() };
            return place.has_room().then_some(place);
        }
        let mut reader = Reader { bytes, at: 5 };
        let destination = reader.vector()?;
        let source = reader.vector()?;
        let space = match first >> 4 & 3 {
            0 => Space::Initial,
            2 => Space::Handshake,
            _ => return None, // 0-RTT and Retry are not sent
        };
        self.directions[1 - peer].cid_bytes = source.len();
        if space == Space::Initial {
            let token_bytes = reader.integer()?;
            reader.skip(token_bytes)?;
            if self.directions.iter().all(|direction| direction.initial.is_none()) {
                self.begin(destination);
            }
        }
        let len = usize::try_from(reader.integer()?).ok()?;
        let place = Place { space, number_at: reader.at, end: reader.at.checked_add(len)? };
        (place.end <= bytes.len() && place.has_room()).then_some(place)
    }

    /// Makes the first packets' keys (RFC 9001, section 5.2).
    fn begin(&mut self, destination: &[u8]) {
        let (secret, _) = Hkdf::<Sha256>::extract(Some(&INITIAL_SALT), destination);
        for (direction, label) in self.directions.iter_mut().zip(["client in", "server in"]) {
            direction.initial = Some(Keys::new(&expanded(&secret, label)));
        }
    }

    fn protect_packet(&mut self, from_client: bool, place: &Place, packet: &mut [u8]) {
        let direction = &mut self.directions[usize::from(!from_client)];
        let first = packet[0];
        let is_long = first & LONG != 0;
        if !is_long {
            packet[0] &= !KEY_PHASE;
        }
        let number_bytes = usize::from(first & 3) + 1;
        let (header, body) = packet.split_at_mut(place.number_at + number_bytes);
        let truncated = header[place.number_at..]
            .iter()
            .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        let next = &mut direction.next_numbers[place.space as usize];
        let number = whole_number(*next, truncated, number_bytes);
        *next = (*next).max(number + 1);
        let keys = match place.space {
            Space::Initial => direction.initial.as_ref(),
            Space::Handshake => Some(&direction.handshake),
            Space::Data => Some(&direction.data),
        };
        let Some(keys) = keys else { return };
        let mut nonce = keys.iv;
        for (byte, part) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= part;
        }
        let (text, tag_bytes) = body.split_at_mut(body.len() - TAG_BYTES);
        let sealed = keys.packet.encrypt_in_place_detached(Nonce::from_slice(&nonce), header, text);
        let Ok(tag) = sealed else { return };
        tag_bytes.copy_from_slice(&tag);
        let sample_at = place.number_at + NUMBER_BYTES_MAX;
        let mut mask = [0; SAMPLE_BYTES];
        mask.copy_from_slice(&packet[sample_at..sample_at + SAMPLE_BYTES]);
        keys.header.encrypt_block((&mut mask).into());
        packet[0] ^= mask[0] & if is_long { 0x0f } else { 0x1f };
        let number_at = place.number_at;
        for (byte, part) in packet[number_at..number_at + number_bytes].iter_mut().zip(&mask[1..]) {
            *byte ^= part;
        }
    }
}

impl Place {
    /// True for a packet with as much behind its number as is sampled.
    fn has_room(&self) -> bool {
        self.number_at + NUMBER_BYTES_MAX + SAMPLE_BYTES <= self.end
    }
}

/// The packet number whose last bytes are these (RFC 9000, appendix A.3).
fn whole_number(expected: u64, truncated: u64, bytes: usize) -> u64 {
    let window = 1_u64 << (8 * bytes);
    let candidate = expected & !(window - 1) | truncated;
    if candidate + window / 2 <= expected {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// Reads a long header.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        let part = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(part)
    }

    /// Reads bytes behind their count in one byte.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let count = self.skip(1)?[0];
        self.skip(count.into())
    }

    /// Reads an integer of variable length (RFC 9000, section 16).
    fn integer(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        let bytes = self.skip(1 << (first >> 6))?;
        let value = bytes.iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (66 - 8 * bytes.len() as u32).min(63)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| {
                let text = std::str::from_utf8(pair).unwrap();
                u8::from_str_radix(text, 16).unwrap()
            })
            .collect()
    }

    #[test]
    fn the_first_packet_of_a_client_is_that_of_rfc_9001() {
        // Appendix A.2: a ClientHello in 245 bytes, padded to 1,162; the header and the sample behind it are given there.
        let mut datagram = bytes("c300000001088394c8f03e5157080000449e00000002");
        datagram.extend(bytes(
            "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
             04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
             616d706c652e636f6dff01000100000a00080006001d00170018001000070005
             04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
             baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
             0d0010000e0403050306030203080408050806002d00020101001c0002400100
             3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
             75300901100f088394c8f03e51570806048000ffff",
        ));
        datagram.resize(1_200, 0);
        let mut protection = Protection::new(1, "flow/a").unwrap();
        protection.protect(true, &mut datagram);
        assert_eq!(datagram[..22], bytes("c000000001088394c8f03e5157080000449e7b9aec34"));
        assert_eq!(datagram[22..38], bytes("d1b1c98dd7689fb8ec11d242b123dc9b"));
        assert_eq!(datagram[1_184..], bytes("e221af44860018ab0856972e194cd934"));
    }

    #[test]
    fn numbers_are_completed_around_the_next() {
        assert_eq!(whole_number(0xa82f_30eb, 0x9b32, 2), 0xa82f_9b32); // RFC 9000, appendix A.3
        assert_eq!(whole_number(256, 0xff, 1), 255);
        assert_eq!(whole_number(255, 0, 1), 256);
    }

    #[test]
    fn what_is_no_packet_stays_as_it_is() {
        let mut protection = Protection::new(1, "flow/a").unwrap();
        for length in 0..60 {
            for first in [0_u8, 0x40, 0xc0, 0xf0] {
                let mut datagram = vec![0xff; length];
                if let Some(byte) = datagram.first_mut() {
                    *byte = first;
                }
                let before = datagram.clone();
                protection.protect(false, &mut datagram);
                assert!(datagram == before || length >= 9 + NUMBER_BYTES_MAX + SAMPLE_BYTES);
            }
        }
    }
}
