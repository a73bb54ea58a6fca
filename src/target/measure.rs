//! What messages take in Redis, measured on the server itself under scratch keys that do not outlive the call.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::script::{MEASURE_MESSAGES, ScriptCall};
use super::{Link, Target, TargetError, link};
use crate::model::Millis;

/// A message as it would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchMessage {
    /// The key that it would have, which is also its member in the set.
    pub key: String,
    /// Its JSON.
    pub json: Vec<u8>,
}

/// What a few messages took.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Their memory; `None` where the user may not ask for it.
    pub sizes: Option<Sizes>,
    /// Messages a second that Redis wrote, and removed again.
    pub messages_per_second: f64,
}

/// The memory of a few messages of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of a set with all of them.
    pub set_bytes: u64,
    /// Bytes of a last packet id.
    pub last_packet_id_bytes: u64,
    /// Bytes of the messages, each under a key of the length that it would have.
    pub message_bytes: u64,
}

/// A key dies by itself after this, should the server stop in the middle of a call.
const LIFE_SECONDS: &str = "60";
/// Calls of the measurement of the rate: enough for a mean, a few ms of the server's time in all.
const CALLS: usize = 16;
/// Calls at once, as a run has them.
const CALLS_IN_FLIGHT: usize = 4;
/// A slow server is left alone after this.
const RATE_LIMIT: Duration = Duration::from_secs(2);

impl Target {
    /// Measures messages of one session.
    ///
    /// # Errors
    /// The user may not write there, or the server is full.
    pub async fn measure(&self, link: &Link, now: Millis, messages: &[ScratchMessage]) -> Result<Measured, TargetError> {
        let doing = "measuring messages under scratch keys";
        let name = format!("{}tbmq-migrate:{{check-{}-{}}}", self.prefix.as_str(), std::process::id(), now.0);
        let keys: Vec<String> = (0..messages.len() + 2).map(|number| format!("{name}:{number}")).collect();
        let call = |measure: &'static str| {
            let mut call = ScriptCall::new(&MEASURE_MESSAGES);
            for key in &keys {
                call.key(key.as_bytes());
            }
            call.arg(b"10000".as_slice()).arg(measure.as_bytes()).arg(LIFE_SECONDS.as_bytes());
            for message in messages {
                call.arg(message.json.as_slice()).arg(message.key.as_bytes());
            }
            call
        };
        // The scratch keys have another length than the real ones.
        let real: usize = messages.iter().map(|message| message.key.len()).sum();
        let scratch: usize = keys.iter().skip(2).map(String::len).sum();
        let sizes = match link.script(doing, &call("measure")).await {
            Err(error) if error.lacks_a_right() => None,
            reply => {
                let (set_bytes, last_packet_id_bytes, of_messages): (u64, u64, u64) = link::reply(doing, reply?)?;
                Some(Sizes { set_bytes, last_packet_id_bytes, message_bytes: (of_messages + real as u64).saturating_sub(scratch as u64) })
            }
        };
        let started = Instant::now();
        let mut calls = 0_u32;
        while calls < u32::try_from(CALLS).unwrap_or(u32::MAX) && started.elapsed() < RATE_LIMIT {
            let call = call("");
            for result in join_all((0..CALLS_IN_FLIGHT).map(|_| link.script(doing, &call))).await {
                result?;
                calls += 1;
            }
        }
        // Lossless: lengths and counts are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let messages_per_second = f64::from(calls) * messages.len() as f64 / started.elapsed().as_secs_f64().max(1e-6);
        Ok(Measured { sizes, messages_per_second })
    }
}
