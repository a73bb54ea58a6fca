//! Messages gathered into calls: bounded in number and bytes, of one slot on a cluster, of any sessions elsewhere.

use std::fmt::Write as _;

use redis::Value;

use super::script::{CREATE_SESSIONS, REPLACE_SESSIONS, ScriptCall, TRIM_SESSIONS};
use super::{Link, TargetError};
use crate::model::{ClientId, KeyPrefix, LastPacketId, Millis, PacketId, Score};

/// Whether the sessions of a batch are known to be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Nothing stands there. A session that does stand there belongs to somebody else and is left alone.
    Fresh,
    /// Something may stand there: it is removed first.
    Replace,
}

/// More messages in a call gain nothing and keep Redis from its other clients.
const MESSAGES_A_CALL: usize = 100;
/// A call of this size takes Redis about a millisecond.
const BYTES_A_CALL: usize = 128 * 1024;
/// Members that one call of the removing script visits.
const TRIM_BUDGET: &str = "500";

/// A call in the making.
pub struct Batch {
    mode: WriteMode,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    arguments: Vec<u8>,
    argument_ends: Vec<usize>,
    sessions: Vec<SessionPart>,
    scores: Vec<Score>,
}

struct SessionPart {
    client: ClientId,
    /// Given in the first call of a session.
    last_packet_id: Option<LastPacketId>,
    messages: usize,
}

/// What a call did not write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Sessions that somebody else made meanwhile.
    pub occupied: Vec<ClientId>,
    /// Sessions whose set or last packet id holds another type, with the scores of their messages in the call; nothing of
    /// them was written.
    pub foreign_sessions: Vec<(ClientId, Vec<Score>)>,
    /// Messages whose key holds another type.
    pub foreign_messages: Vec<(ClientId, Score)>,
}

impl Batch {
    /// An empty one.
    pub fn new(mode: WriteMode) -> Self {
        Self {
            mode,
            keys: Vec::new(),
            key_ends: Vec::new(),
            arguments: Vec::new(),
            argument_ends: Vec::new(),
            sessions: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Adds a session, or the next part of one when `last_packet_id` is `None`.
    pub fn begin_session(&mut self, prefix: &KeyPrefix, client: &ClientId, last_packet_id: Option<LastPacketId>) {
        for key in [prefix.messages(client.as_str()), prefix.last_packet_id(client.as_str())] {
            self.keys.extend_from_slice(key.as_bytes());
            self.key_ends.push(self.keys.len());
        }
        self.sessions.push(SessionPart { client: client.clone(), last_packet_id, messages: 0 });
    }

    /// Adds a message to the session begun last; `encode` appends its JSON.
    pub fn push(&mut self, packet_id: PacketId, score: Score, deadline: Millis, encode: impl FnOnce(&mut Vec<u8>)) {
        let Some(session) = self.sessions.last_mut() else { return };
        session.messages += 1;
        let set_at = self.key_ends.len() - 1 - session.messages;
        let set = self.key_ends.get(set_at.wrapping_sub(1)).copied().unwrap_or(0)..self.key_ends[set_at];
        self.keys.extend_from_within(set);
        let mut number = String::with_capacity(8);
        // Writing to a String cannot fail.
        let _ = write!(number, "_{}", packet_id.get());
        self.keys.extend_from_slice(number.as_bytes());
        self.key_ends.push(self.keys.len());
        encode(&mut self.arguments);
        self.argument_ends.push(self.arguments.len());
        for value in [deadline.0, score.get()] {
            number.clear();
            let _ = write!(number, "{value}");
            self.arguments.extend_from_slice(number.as_bytes());
            self.argument_ends.push(self.arguments.len());
        }
        self.scores.push(score);
    }

    /// The sessions of which it holds a part.
    pub fn clients(&self) -> impl Iterator<Item = &ClientId> {
        self.sessions.iter().map(|session| &session.client)
    }

    /// Whether it holds nothing to send.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether it is large enough to be sent.
    pub fn is_full(&self) -> bool {
        self.scores.len() + self.sessions.len() / 2 >= MESSAGES_A_CALL || self.bytes() >= BYTES_A_CALL
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.keys.len() + self.arguments.len()
    }

    /// Messages in it.
    pub fn messages(&self) -> usize {
        self.scores.len()
    }

    fn call(&self) -> ScriptCall<'_> {
        let mut call = ScriptCall::new(match self.mode {
            WriteMode::Fresh => &CREATE_SESSIONS,
            WriteMode::Replace => &REPLACE_SESSIONS,
        });
        for key in pieces(&self.keys, &self.key_ends) {
            call.key(key);
        }
        let mut arguments = pieces(&self.arguments, &self.argument_ends);
        for session in &self.sessions {
            call.arg(session.messages.to_string().into_bytes());
            call.arg(session.last_packet_id.map_or_else(Vec::new, |id| id.get().to_string().into_bytes()));
            for argument in arguments.by_ref().take(3 * session.messages) {
                call.arg(argument);
            }
        }
        call
    }

    /// Turns the list that the script replied into what it names.
    fn refused(&self, value: Value) -> Result<Refused, TargetError> {
        let doing = "writing sessions";
        let numbers: Vec<usize> = super::link::reply(doing, value)?;
        let mut refused = Refused::default();
        for number in numbers {
            let known = match self.mode {
                WriteMode::Fresh => self.refuse_occupied(number, &mut refused),
                WriteMode::Replace => self.refuse_foreign(number, &mut refused),
            };
            known.ok_or(TargetError::Reply { doing })?;
        }
        Ok(refused)
    }

    /// Names the session with this number.
    fn refuse_occupied(&self, number: usize, refused: &mut Refused) -> Option<()> {
        refused.occupied.push(self.sessions.get(number.checked_sub(1)?)?.client.clone());
        Some(())
    }

    /// Names the session or the message whose key has this position.
    fn refuse_foreign(&self, position: usize, refused: &mut Refused) -> Option<()> {
        let (mut key, mut message) = (0, 0);
        for session in &self.sessions {
            let (next, scores) = (key + 2 + session.messages, self.scores.get(message..message + session.messages)?);
            if (key + 1..=next).contains(&position) {
                match position - key {
                    1 | 2 => refused.foreign_sessions.push((session.client.clone(), scores.to_vec())),
                    nth => refused.foreign_messages.push((session.client.clone(), *scores.get(nth - 3)?)),
                }
                return Some(());
            }
            key = next;
            message += session.messages;
        }
        None
    }
}

impl Link {
    /// Writes a batch; in [`WriteMode::Replace`] what its sessions held before is removed first, where their first part
    /// is in it.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn write(&self, batch: &Batch) -> Result<Refused, TargetError> {
        if batch.mode == WriteMode::Replace {
            let mut key = 0;
            let mut firsts = Vec::new();
            let keys: Vec<&[u8]> = pieces(&batch.keys, &batch.key_ends).collect();
            for session in &batch.sessions {
                if session.last_packet_id.is_some() {
                    firsts.push((keys[key], keys[key + 1]));
                }
                key += 2 + session.messages;
            }
            self.clear(&firsts).await?;
        }
        batch.refused(self.script("writing sessions", &batch.call()).await?)
    }

    /// Removes all messages of sessions of one call, given by their set and last-packet-id keys.
    pub(super) async fn clear(&self, mut sessions: &[(&[u8], &[u8])]) -> Result<(), TargetError> {
        let doing = "clearing sessions";
        while !sessions.is_empty() {
            let mut call = ScriptCall::new(&TRIM_SESSIONS);
            for (set, last) in sessions {
                call.key(set).key(last);
            }
            call.arg(TRIM_BUDGET.as_bytes());
            for _ in sessions {
                call.arg(b"+inf".as_slice());
            }
            let (unfinished, _foreign): (usize, Vec<usize>) = super::link::reply(doing, self.script(doing, &call).await?)?;
            match unfinished {
                0 => return Ok(()),
                number => sessions = sessions.get(number - 1..).ok_or(TargetError::Reply { doing })?,
            }
        }
        Ok(())
    }
}

fn pieces<'b>(bytes: &'b [u8], ends: &'b [usize]) -> impl Iterator<Item = &'b [u8]> {
    let mut from = 0;
    ends.iter().map(move |&end| {
        let piece = &bytes[from..end];
        from = end;
        piece
    })
}
