//! The TCP endpoint.
