//! Randomness of an endpoint: named streams of the run.

use crate::contract::Settings;
use dragstrip_units::Stream;

/// Bytes of a connection ID.
pub(crate) const CID_BYTES: usize = 8;

/// Bytes of a stateless reset token (RFC 9000, section 10.3).
pub(crate) const TOKEN_BYTES: usize = 16;

/// Seed of the endpoint's own generator: gaps of packet numbers, spin bit, order of parameters.
pub(crate) fn generator(settings: &Settings<'_>) -> [u8; 32] {
    let mut stream = stream(settings, "endpoint");
    let mut seed = [0; 32];
    for word in seed.chunks_exact_mut(8) {
        word.copy_from_slice(&stream.next_u64().to_le_bytes());
    }
    seed
}

/// A stream for connection IDs.
pub(crate) fn connection_ids(settings: &Settings<'_>) -> Stream {
    stream(settings, "cid")
}

/// A stream for all that the endpoint of a stack draws which takes no seed but asks for every byte.
pub(crate) fn draws(settings: &Settings<'_>) -> Stream {
    stream(settings, "draws")
}

fn stream(settings: &Settings<'_>, purpose: &str) -> Stream {
    Stream::named(settings.seed, &format!("{}/{purpose}", settings.name))
}

/// Signature of `data`: equal data have equal ones, as a reset token needs.
pub(crate) fn sign(data: &[u8], signature: &mut [u8]) {
    let name = data.iter().map(|byte| char::from(*byte)).collect::<String>();
    let mut stream = Stream::named(0, &name);
    for word in signature.chunks_mut(8) {
        word.copy_from_slice(&stream.next_u64().to_le_bytes()[..word.len()]);
    }
}
