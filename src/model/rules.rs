//! The settings that decide what a row becomes.
//!
//! They are inputs of every decision in this layer, so that one function gives the same answer to a copy, a dry run and a comparison.

use std::time::Duration;

/// The JSON field that carries the topic of a message (contract section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TopicField {
    /// `topicName`: read by every target from 2.0.1 on.
    #[default]
    TopicName,
    /// `topic`: the only name that 2.0.0 reads; all later versions read it too.
    Topic,
}

/// What the operator may choose about the outcome of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A session keeps this many of its newest messages, 1..=65535.
    pub message_limit: u32,
    /// Life of a message that brings no interval of its own, and of every PUBREL.
    pub default_ttl: Duration,
    /// Name of the topic field in the JSON.
    pub topic_field: TopicField,
    /// A payload of more bytes is quarantined. Never more than [`Rules::PAYLOAD_BYTES_CEILING`].
    pub max_payload_bytes: usize,
}

impl Rules {
    /// The broker's JSON parser takes strings of up to 20,000,000 characters, and base64 turns 3 bytes into 4 characters.
    pub const PAYLOAD_BYTES_CEILING: usize = 15_000_000;
    /// Redis holds one message a packet id, and there are this many packet ids.
    pub const MESSAGE_LIMIT_CEILING: u32 = 65_535;
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            message_limit: 10_000,
            default_ttl: Duration::from_secs(604_800),
            topic_field: TopicField::TopicName,
            max_payload_bytes: Self::PAYLOAD_BYTES_CEILING,
        }
    }
}
