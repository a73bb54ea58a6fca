//! Reading sessions back: parts of them, several a call, by a script that only reads.
//!
//! A part is a range of scores with the packet ids that are expected in it. So a session of any length is read in bounded
//! calls, and what nobody expected shows by the number of references in the range.

use redis::{Cmd, Value};

use super::script::{READ_SESSIONS, ScriptCall};
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

/// A call in the making.
#[derive(Debug, Default)]
pub struct Reading {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
    counts: Vec<usize>,
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
        let before = self.keys.len() + 2;
        self.keys.push(set.clone().into_bytes());
        self.keys.push(prefix.last_packet_id(part.client).into_bytes());
        self.keys.extend(packet_ids.map(|packet_id| KeyPrefix::message(&set, packet_id).into_bytes()));
        let count = self.keys.len() - before;
        let what = format!("{}{}", if part.head { "h" } else { "" }, if part.values { "v" } else { "" });
        let [lowest, highest] = part.range.bounds();
        self.arguments.extend([count.to_string(), what, lowest, highest].map(String::into_bytes));
        self.counts.push(count);
    }

    fn call(&self) -> ScriptCall<'_> {
        let mut call = ScriptCall::new(&READ_SESSIONS);
        for key in &self.keys {
            call.key(key);
        }
        for argument in &self.arguments {
            call.arg(argument.as_slice());
        }
        call
    }

    fn parts(&self, value: Value) -> Option<Vec<FoundPart>> {
        let Value::Array(parts) = value else { return None };
        if parts.len() != self.counts.len() {
            return None;
        }
        parts.into_iter().zip(&self.counts).map(|(part, &count)| FoundPart::read(part, count)).collect()
    }
}

impl FoundPart {
    fn read(value: Value, count: usize) -> Option<Self> {
        let Value::Array(fields) = value else { return None };
        let [references, last_packet_id, last_end, Value::Array(values), Value::Array(ends), Value::Array(scores)] =
            <[Value; 6]>::try_from(fields).ok()?
        else {
            return None;
        };
        let references = match references {
            Value::Int(count) => Ok(u64::try_from(count).ok()?),
            other => Err(type_name(other)?),
        };
        if ends.len() != count || values.len() > count || scores.len() > count {
            return None;
        }
        // A list in Lua has no nil at its end.
        let mut values = values.into_iter();
        let mut scores = scores.into_iter();
        let entries = ends.into_iter().map(|end| {
            let string = StoredString::read(values.next().unwrap_or(Value::Nil))?;
            let score = match scores.next() {
                None | Some(Value::Nil) => None,
                Some(Value::BulkString(text)) => Some(std::str::from_utf8(&text).ok()?.parse().ok()?),
                Some(Value::Double(score)) => Some(score),
                Some(_) => return None,
            };
            Some(StoredEntry { string, end: integer(&end)?, score })
        });
        let messages = entries.collect::<Option<Vec<_>>>()?;
        Some(Self { references, last_packet_id: StoredString::read(last_packet_id)?, last_packet_id_end: integer(&last_end)?, messages })
    }

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
    fn read(value: Value) -> Option<Self> {
        Some(match value {
            Value::Nil => Self::Missing,
            Value::BulkString(text) => Self::Text(text),
            Value::Int(_) => Self::Unread,
            other => Self::Other(type_name(other)?),
        })
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

fn type_name(value: Value) -> Option<String> {
    match value {
        Value::SimpleString(name) => Some(name),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn deadline(end: i64) -> Option<Millis> {
    (end >= 0).then_some(Millis(end))
}

impl Link {
    /// Reads what a call asks for; the parts come back in the order in which they were added.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn read(&self, reading: &Reading) -> Result<Vec<FoundPart>, TargetError> {
        let doing = "reading sessions";
        let value = self.script(doing, &reading.call()).await?;
        reading.parts(value).ok_or(TargetError::Reply { doing })
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
