//! The stacks' cryptography without ciphers: lengths are those of AES-GCM, everything else is left as it is. Captures encrypt the
//! packets afterwards (`protection.rs`).

/// Bytes of a packet's tag (RFC 9001, section 5.3).
pub(crate) const TAG_BYTES: usize = 16;

/// Bytes that header protection samples (RFC 9001, section 5.4.2).
pub(crate) const SAMPLE_BYTES: usize = 16;

/// Implements a stack's traits of cryptography. The two stacks' differ in how a connection ID is passed (`$cid`), in how a
/// configuration is (`$shared`), and in whether a packet belongs to a path (`$path`).
macro_rules! session {
    ($proto:ident, cid: $cid:ty, shared: $shared:ty, path: ($($path:ty)?)) => {
        use crate::handshake::{Handshake, Level};
        use crate::secrets::Secret;
        use crate::session::{SAMPLE_BYTES, TAG_BYTES};
        use bytes::BytesMut;
        use std::any::Any;
        use std::io::Cursor;
        use $proto::crypto;
        use $proto::transport_parameters::TransportParameters;

        /// A key that changes nothing.
        struct NullKey;

        impl crypto::PacketKey for NullKey {
            fn encrypt(&self, $(_: $path,)? _: u64, _: &mut [u8], _: usize) {}

            fn decrypt(
                &self,
                $(_: $path,)?
                _: u64,
                _: &[u8],
                payload: &mut BytesMut,
            ) -> Result<(), crypto::CryptoError> {
                let len = payload.len().checked_sub(TAG_BYTES).ok_or(crypto::CryptoError)?;
                payload.truncate(len);
                Ok(())
            }

            fn tag_len(&self) -> usize {
                TAG_BYTES
            }

            fn confidentiality_limit(&self) -> u64 {
                u64::MAX
            }

            fn integrity_limit(&self) -> u64 {
                u64::MAX
            }
        }

        impl crypto::HeaderKey for NullKey {
            fn decrypt(&self, _: usize, _: &mut [u8]) {}

            fn encrypt(&self, _: usize, _: &mut [u8]) {}

            fn sample_size(&self) -> usize {
                SAMPLE_BYTES
            }
        }

        fn packet_keys() -> crypto::KeyPair<Box<dyn crypto::PacketKey>> {
            crypto::KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) }
        }

        fn keys() -> crypto::Keys {
            let header = crypto::KeyPair {
                local: Box::new(NullKey) as Box<dyn crypto::HeaderKey>,
                remote: Box::new(NullKey) as Box<dyn crypto::HeaderKey>,
            };
            crypto::Keys { header, packet: packet_keys() }
        }

        /// A handshake in the form that the stack knows.
        struct Session(Handshake);

        impl Session {
            fn boxed(
                is_client: bool,
                random: Secret,
                parameters: &TransportParameters,
            ) -> Box<dyn crypto::Session> {
                let mut own = Vec::new();
                parameters.write(&mut own);
                Box::new(Self(Handshake::new(is_client, random, own)))
            }
        }

        impl crypto::Session for Session {
            fn initial_keys(&self, _: $cid, _: $proto::Side) -> crypto::Keys {
                keys()
            }

            fn handshake_data(&self) -> Option<Box<dyn Any>> {
                None
            }

            fn peer_identity(&self) -> Option<Box<dyn Any>> {
                None
            }

            fn early_crypto(
                &self,
            ) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
                None
            }

            fn early_data_accepted(&self) -> Option<bool> {
                Some(false)
            }

            fn is_handshaking(&self) -> bool {
                !self.0.is_done()
            }

            fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, $proto::TransportError> {
                self.0.read(bytes);
                Ok(false)
            }

            fn transport_parameters(
                &self,
            ) -> Result<Option<TransportParameters>, $proto::TransportError> {
                let side =
                    if self.0.is_client() { $proto::Side::Client } else { $proto::Side::Server };
                let Some(bytes) = self.0.peer() else { return Ok(None) };
                Ok(Some(TransportParameters::read(side, &mut Cursor::new(bytes))?))
            }

            fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<crypto::Keys> {
                self.0.write(buffer).map(|_: Level| keys())
            }

            fn next_1rtt_keys(
                &mut self,
            ) -> Option<crypto::KeyPair<Box<dyn crypto::PacketKey>>> {
                Some(packet_keys())
            }

            fn is_valid_retry(&self, _: $cid, _: &[u8], _: &[u8]) -> bool {
                false
            }

            fn export_keying_material(
                &self,
                _: &mut [u8],
                _: &[u8],
                _: &[u8],
            ) -> Result<(), crypto::ExportKeyingMaterialError> {
                Err(crypto::ExportKeyingMaterialError)
            }
        }

        /// Starts sessions of a connection with this random.
        struct Sessions(Secret);

        impl crypto::ClientConfig for Sessions {
            fn start_session(
                self: $shared,
                _: u32,
                _: &str,
                parameters: &TransportParameters,
            ) -> Result<Box<dyn crypto::Session>, $proto::ConnectError> {
                Ok(Session::boxed(true, self.0, parameters))
            }
        }

        impl crypto::ServerConfig for Sessions {
            fn initial_keys(
                &self,
                _: u32,
                _: $cid,
            ) -> Result<crypto::Keys, crypto::UnsupportedVersion> {
                Ok(keys())
            }

            fn retry_tag(&self, _: u32, _: $cid, _: &[u8]) -> [u8; 16] {
                [0; 16]
            }

            fn start_session(
                self: $shared,
                _: u32,
                parameters: &TransportParameters,
            ) -> Box<dyn crypto::Session> {
                Session::boxed(false, self.0, parameters)
            }
        }

        /// Signs reset tokens.
        struct ResetKey;

        impl crypto::HmacKey for ResetKey {
            fn sign(&self, data: &[u8], signature: &mut [u8]) {
                crate::seeds::sign(data, signature);
            }

            fn signature_len(&self) -> usize {
                crate::seeds::TOKEN_BYTES
            }

            fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), crypto::CryptoError> {
                let mut expected = [0; crate::seeds::TOKEN_BYTES];
                crate::seeds::sign(data, &mut expected);
                if expected == signature { Ok(()) } else { Err(crypto::CryptoError) }
            }
        }
    };
}

pub(crate) use session;
