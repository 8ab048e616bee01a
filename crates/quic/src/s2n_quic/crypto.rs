//! s2n-quic's cryptography without ciphers: lengths are those of AES-GCM, everything else is left as it is.

use crate::handshake::{Handshake, Level};
use crate::secrets::Secret;
use crate::session::{SAMPLE_BYTES, TAG_BYTES};
use bytes::Bytes;
use s2n_codec::{Encoder as _, EncoderValue};
use s2n_quic_core::application::ServerName;
use s2n_quic_core::crypto::tls::{
    ApplicationParameters, CipherSuite, ConnectionInfo, Context, HandshakeType, HelloOffsets,
    NamedGroup,
};
use s2n_quic_core::crypto::{self, HeaderProtectionMask, packet_protection, retry, scatter, tls};
use s2n_quic_core::transport;
use std::task::Poll;

/// A key that changes nothing.
#[derive(Debug)]
pub struct NullKey;

impl crypto::Key for NullKey {
    fn decrypt(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<(), packet_protection::Error> {
        Ok(())
    }

    fn encrypt(
        &mut self,
        _: u64,
        _: &[u8],
        payload: &mut scatter::Buffer<'_>,
    ) -> Result<(), packet_protection::Error> {
        payload.flatten().write_slice(&[0; TAG_BYTES]);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn aead_confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn aead_integrity_limit(&self) -> u64 {
        u64::MAX
    }

    fn cipher_suite(&self) -> CipherSuite {
        CipherSuite::Unknown
    }
}

impl crypto::HeaderKey for NullKey {
    fn opening_header_protection_mask(&self, _: &[u8]) -> HeaderProtectionMask {
        HeaderProtectionMask::default()
    }

    fn opening_sample_len(&self) -> usize {
        SAMPLE_BYTES
    }

    fn sealing_header_protection_mask(&self, _: &[u8]) -> HeaderProtectionMask {
        HeaderProtectionMask::default()
    }

    fn sealing_sample_len(&self) -> usize {
        SAMPLE_BYTES
    }
}

impl crypto::HandshakeKey for NullKey {}
impl crypto::HandshakeHeaderKey for NullKey {}
impl crypto::InitialHeaderKey for NullKey {}
impl crypto::OneRttHeaderKey for NullKey {}
impl crypto::ZeroRttKey for NullKey {}
impl crypto::ZeroRttHeaderKey for NullKey {}

impl crypto::InitialKey for NullKey {
    type HeaderKey = Self;

    fn new_server(_: &[u8]) -> (Self, Self) {
        (Self, Self)
    }

    fn new_client(_: &[u8]) -> (Self, Self) {
        (Self, Self)
    }
}

impl crypto::OneRttKey for NullKey {
    fn derive_next_key(&self) -> Self {
        Self
    }
}

impl crypto::RetryKey for NullKey {
    fn generate_tag(_: &[u8]) -> retry::IntegrityTag {
        retry::IntegrityTag::default()
    }

    fn validate(_: &[u8], _: retry::IntegrityTag) -> Result<(), packet_protection::Error> {
        Ok(())
    }
}

/// Starts sessions of a connection with this random.
#[derive(Debug)]
pub struct Sessions(pub Secret);

impl tls::Endpoint for Sessions {
    type Session = Session;

    fn new_server_session<Params: EncoderValue>(
        &mut self,
        parameters: &Params,
        _: ConnectionInfo,
    ) -> Session {
        Session::new(false, self.0, parameters)
    }

    fn new_client_session<Params: EncoderValue>(
        &mut self,
        parameters: &Params,
        _: ServerName,
    ) -> Session {
        Session::new(true, self.0, parameters)
    }

    fn max_tag_length(&self) -> usize {
        TAG_BYTES
    }
}

/// A handshake in the form that the stack knows.
#[derive(Debug)]
pub struct Session {
    handshake: Handshake,
    /// Messages leave with the keys of the handshake, not of the initial packets.
    has_handshake_keys: bool,
    completed: bool,
}

impl Session {
    fn new(is_client: bool, random: Secret, parameters: &impl EncoderValue) -> Self {
        let handshake = Handshake::new(is_client, random, parameters.encode_to_vec());
        Self { handshake, has_handshake_keys: false, completed: false }
    }

    /// Gives the stack the keys that a step has brought.
    fn install(
        &mut self,
        level: Level,
        context: &mut impl Context<Self>,
    ) -> Result<(), transport::Error> {
        match level {
            Level::Handshake => {
                self.has_handshake_keys = true;
                context.on_handshake_keys(NullKey, NullKey)
            }
            Level::OneRtt => {
                context.on_server_name(super::SERVER_NAME.into())?;
                context.on_application_protocol(Bytes::from_static(b"dragstrip"))?;
                context.on_key_exchange_group(NamedGroup {
                    group_name: "none",
                    contains_kem: false,
                })?;
                let transport_parameters = self.handshake.peer().unwrap_or_default();
                let parameters = ApplicationParameters { transport_parameters };
                context.on_one_rtt_keys(NullKey, NullKey, parameters)
            }
        }
    }
}

impl crypto::CryptoSuite for Session {
    type HandshakeKey = NullKey;
    type HandshakeHeaderKey = NullKey;
    type InitialKey = NullKey;
    type InitialHeaderKey = NullKey;
    type OneRttKey = NullKey;
    type OneRttHeaderKey = NullKey;
    type ZeroRttKey = NullKey;
    type ZeroRttHeaderKey = NullKey;
    type RetryKey = NullKey;
}

impl tls::Session for Session {
    fn poll<C: Context<Self>>(&mut self, context: &mut C) -> Poll<Result<(), transport::Error>> {
        while let Some(bytes) = context.receive_initial(None) {
            self.handshake.read(&bytes);
        }
        while let Some(bytes) = context.receive_handshake(None) {
            self.handshake.read(&bytes);
        }
        loop {
            let mut message = Vec::new();
            let keys = self.handshake.write(&mut message);
            let is_empty = message.is_empty();
            match (is_empty, self.has_handshake_keys) {
                (true, _) => {}
                (false, false) => context.send_initial(message.into()),
                (false, true) => context.send_handshake(message.into()),
            }
            match keys {
                Some(level) => self.install(level, context)?,
                None if is_empty => break,
                None => {}
            }
        }
        if !self.handshake.is_done() {
            return Poll::Pending;
        }
        if !std::mem::replace(&mut self.completed, true) {
            context.on_handshake_complete()?;
        }
        Poll::Ready(Ok(()))
    }

    fn parse_hello(
        _: HandshakeType,
        _: &[u8],
        _: u64,
        _: u64,
    ) -> Result<Option<HelloOffsets>, transport::Error> {
        Ok(Some(HelloOffsets { payload_offset: 0, payload_len: 0 }))
    }
}
