//! Reading sessions back, by plain commands that read: parts of them, several in one go.
//!
//! No script: a comparison needs no moment in which all of a session is read, and the commands take Redis half the time that
//! a script takes which calls them, with other clients served in between. A part is a range of scores with the packet ids that are expected in it. So a session of any length is read in bounded
//! calls, and what nobody expected shows by the number of references in the range.

use redis::{Cmd, Value};

use super::{Link, TargetError, link};
use crate::model::{FoundHead, FoundMessage, FoundString, KeyPrefix, Millis};

/// A range of scores: all that is at least `lowest` and below `end`; open where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScoreRange {
    /// Inclusive.
    pub lowest: Option<i64>,
    /// Exclusive.
    pub end: Option<i64>,
}

/// What a part asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartRequest<'c> {
    /// Whose.
    pub client: &'c str,
    /// The range in which references are counted.
    pub range: ScoreRange,
    /// Whether the last packet id is read.
    pub head: bool,
    /// Whether the values of the messages are read, and not only whether they stand there.
    pub values: bool,
}

/// Parts that are read together; of one slot on a cluster.
#[derive(Debug, Default)]
pub struct Reading {
    parts: Vec<PartCommands>,
}

/// The commands of one part.
#[derive(Debug)]
struct PartCommands {
    set: String,
    last_packet_id: String,
    messages: Vec<String>,
    range: ScoreRange,
    head: bool,
    values: bool,
}

/// One part as it was read.
#[derive(Debug)]
pub struct FoundPart {
    /// References in the range; the type's name where the key holds another one.
    pub references: Result<u64, String>,
    last_packet_id: StoredString,
    last_packet_id_end: i64,
    messages: Vec<StoredEntry>,
}

#[derive(Debug)]
struct StoredEntry {
    string: StoredString,
    end: i64,
    score: Option<f64>,
}

#[derive(Debug)]
enum StoredString {
    Missing,
    Text(Vec<u8>),
    /// It stands there; its value was not asked for.
    Unread,
    Other(String),
}

/// References that one command lists: some 100 µs of the server's time.
const MEMBERS_A_CALL: usize = 500;

impl ScoreRange {
    /// Whether a score lies in it. Bounds are scores of the law, exact as doubles, or beyond any.
    #[allow(clippy::cast_precision_loss)]
    pub fn holds(self, score: f64) -> bool {
        self.lowest.is_none_or(|lowest| score >= lowest as f64) && self.end.is_none_or(|end| score < end as f64)
    }

    fn bounds(self) -> [String; 2] {
        [
            self.lowest.map_or_else(|| "-inf".to_owned(), |lowest| lowest.to_string()),
            self.end.map_or_else(|| "+inf".to_owned(), |end| format!("({end}")),
        ]
    }
}

impl Reading {
    /// Adds a part; its messages are given by their packet ids, in the order in which they will come back.
    pub fn add(&mut self, prefix: &KeyPrefix, part: &PartRequest<'_>, packet_ids: impl Iterator<Item = u16>) {
        let set = prefix.messages(part.client);
        let messages = packet_ids.map(|packet_id| KeyPrefix::message(&set, packet_id)).collect();
        let last_packet_id = prefix.last_packet_id(part.client);
        self.parts.push(PartCommands { set, last_packet_id, messages, range: part.range, head: part.head, values: part.values });
    }
}

impl PartCommands {
    /// Each takes the server some µs; those that take all keys at once some dozen.
    fn commands(&self) -> Vec<Cmd> {
        let command = |name: &str, key: &str| {
            let mut command = Cmd::with_capacity(2, name.len() + key.len());
            command.arg(name).arg(key);
            command
        };
        let [lowest, highest] = self.range.bounds();
        let mut count = command("ZCOUNT", &self.set);
        count.arg(lowest).arg(highest);
        let mut commands = vec![count];
        if self.head {
            commands.push(command("GET", &self.last_packet_id));
            commands.push(command("PEXPIRETIME", &self.last_packet_id));
        }
        if self.messages.is_empty() {
            return commands;
        }
        let bytes = self.messages.iter().map(String::len).sum();
        let mut scores = Cmd::with_capacity(self.messages.len() + 2, bytes);
        scores.arg("ZMSCORE").arg(&self.set).arg(&self.messages);
        commands.push(scores);
        if self.values {
            let mut values = Cmd::with_capacity(self.messages.len() + 1, bytes);
            values.arg("MGET").arg(&self.messages);
            commands.push(values);
        }
        commands.extend(self.messages.iter().map(|message| command("PEXPIRETIME", message)));
        commands
    }

    async fn found(&self, link: &Link, replies: &mut impl Iterator<Item = Option<Value>>) -> Result<FoundPart, TargetError> {
        let mut next = || replies.next().ok_or(UNEXPECTED);
        let references = match next()? {
            Some(count) => Ok(link::reply(DOING, count)?),
            None => Err(link.type_of(&self.set).await?),
        };
        let (mut last_packet_id, mut last_packet_id_end) = (StoredString::Missing, NOT_THERE);
        if self.head {
            last_packet_id = match next()? {
                Some(value) => StoredString::read(value)?,
                None => StoredString::Other(link.type_of(&self.last_packet_id).await?),
            };
            last_packet_id_end = end(next()?)?;
        }
        let mut messages = Vec::with_capacity(self.messages.len());
        if self.messages.is_empty() {
            return Ok(FoundPart { references, last_packet_id, last_packet_id_end, messages });
        }
        let mut scores = list(next()?)?;
        let mut values = if self.values { list(next()?)? } else { Vec::new().into_iter() };
        for key in &self.messages {
            let end = end(next()?)?;
            let string = match values.next().unwrap_or(Value::Nil) {
                Value::Nil if end == NOT_THERE => StoredString::Missing,
                // Not asked for, of another type, or written in this moment.
                Value::Nil => StoredString::of_type(link.type_of(key).await?),
                // Gone between the two looks.
                _ if end == NOT_THERE => StoredString::Missing,
                value => StoredString::read(value)?,
            };
            messages.push(StoredEntry { string, end, score: score(scores.next())? });
        }
        Ok(FoundPart { references, last_packet_id, last_packet_id_end, messages })
    }
}

const DOING: &str = "reading sessions";
const UNEXPECTED: TargetError = TargetError::Reply { doing: DOING };
/// What PEXPIRETIME says of a key that does not exist.
const NOT_THERE: i64 = -2;

fn end(reply: Option<Value>) -> Result<i64, TargetError> {
    match reply {
        Some(Value::Int(end)) => Ok(end),
        _ => Err(UNEXPECTED),
    }
}

/// A list; an empty one where the key is of another type.
fn list(reply: Option<Value>) -> Result<std::vec::IntoIter<Value>, TargetError> {
    match reply {
        Some(Value::Array(list)) => Ok(list.into_iter()),
        None => Ok(Vec::new().into_iter()),
        Some(_) => Err(UNEXPECTED),
    }
}

fn score(reply: Option<Value>) -> Result<Option<f64>, TargetError> {
    match reply {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::BulkString(text)) => std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).map(Some).ok_or(UNEXPECTED),
        Some(Value::Double(score)) => Ok(Some(score)),
        Some(_) => Err(UNEXPECTED),
    }
}

impl FoundPart {
    /// The last packet id and the type of the set, where the part asked for them.
    pub fn head(&self) -> FoundHead<'_> {
        FoundHead {
            last_packet_id: self.last_packet_id.found(),
            last_packet_id_deadline: deadline(self.last_packet_id_end),
            set_of_other_type: self.references.as_ref().err().map(String::as_str),
        }
    }

    /// The messages, in the order in which they were asked for.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = FoundMessage<'_>> {
        self.messages.iter().map(|entry| FoundMessage { string: entry.string.found(), deadline: deadline(entry.end), score: entry.score })
    }
}

impl StoredString {
    fn read(value: Value) -> Result<Self, TargetError> {
        match value {
            Value::Nil => Ok(Self::Missing),
            Value::BulkString(text) => Ok(Self::Text(text)),
            _ => Err(UNEXPECTED),
        }
    }

    fn of_type(name: String) -> Self {
        match name.as_str() {
            "none" => Self::Missing,
            "string" => Self::Unread,
            _ => Self::Other(name),
        }
    }

    fn found(&self) -> FoundString<'_> {
        match self {
            Self::Missing => FoundString::Missing,
            Self::Text(text) => FoundString::Text(text),
            Self::Unread => FoundString::Text(&[]),
            Self::Other(name) => FoundString::Other(name),
        }
    }
}

fn deadline(end: i64) -> Option<Millis> {
    (end >= 0).then_some(Millis(end))
}

impl Link {
    /// Reads what is asked for; the parts come back in the order in which they were added.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn read(&self, reading: &Reading) -> Result<Vec<FoundPart>, TargetError> {
        let commands = reading.parts.iter().flat_map(PartCommands::commands).collect();
        let mut replies = self.read_all(DOING, commands).await?.into_iter();
        let mut found = Vec::with_capacity(reading.parts.len());
        for part in &reading.parts {
            found.push(part.found(self, &mut replies).await?);
        }
        Ok(found)
    }

    /// The sizes in bytes of the strings of messages; 0 for what is not there or of another type.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn sizes(&self, prefix: &KeyPrefix, client: &str, packet_ids: impl Iterator<Item = u16>) -> Result<Vec<u64>, TargetError> {
        let set = prefix.messages(client);
        let commands = packet_ids.map(|packet_id| {
            let mut command = Cmd::new();
            command.arg("STRLEN").arg(KeyPrefix::message(&set, packet_id));
            command
        });
        let replies = self.read_all(DOING, commands.collect()).await?;
        replies.into_iter().map(|reply| reply.map_or(Ok(0), |size| link::reply(DOING, size))).collect()
    }

    /// The references of a session in a range of scores with their scores, by falling score, after the first `skip`; none
    /// at the end.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn references(&self, prefix: &KeyPrefix, client: &str, range: ScoreRange, skip: usize) -> Result<Vec<(Vec<u8>, f64)>, TargetError> {
        let doing = "listing the references of a session";
        let [lowest, highest] = range.bounds();
        let mut command = Cmd::new();
        command.arg("ZRANGE").arg(prefix.messages(client)).arg(highest).arg(lowest).arg("BYSCORE").arg("REV");
        command.arg("LIMIT").arg(skip).arg(MEMBERS_A_CALL).arg("WITHSCORES");
        link::reply(doing, self.call(doing, &command).await?)
    }
}
