//! The rules of the data, pure: no I/O, no clock (`now` is an argument), no async.
//!
//! One law, one place: [`SessionLaw`] turns the rows of a session into the state that Redis must hold and the outcome of
//! each row. Everything that copies, counts or compares asks it.

mod comparison;
mod consequence;
mod deadline;
mod digest;
mod finding;
mod identifier;
mod key;
mod message;
mod outcome;
mod queue;
mod row;
mod rules;
mod session;
mod settle;
mod stored;

pub use comparison::{Comparison, Differences, FoundHead, FoundMessage, FoundString, Tolerance};
pub use consequence::Consequence;
pub use deadline::{Life, Millis, PacketType};
pub use digest::digest_of;
pub use finding::{Finding, FindingKind};
pub use identifier::{ClientId, EscapedText, LastPacketId, PacketId, Score, SerialNumber};
pub use key::{KeyKind, KeyPrefix, SLOTS, prefix_of, slot_of_key};
pub use message::{Carriable, Content, Encoder};
pub use outcome::{Compared, Outcome, QuarantineReason, Tally};
pub use queue::QueueCheck;
pub use row::{ContextRow, MessageRow};
pub use rules::{Rules, TopicField};
pub use session::{Judgement, SessionLaw, WantedMessage};
pub use settle::{Applied, Round, Verdict};
pub use stored::{StoredMessage, Unreadable};
