//! The scripts of the tool: how one is called and what happens when a server does not know it.

use std::borrow::Cow;
use std::sync::LazyLock;

use redis::Cmd;

/// A Lua script with the digest under which servers keep it.
#[derive(Debug)]
pub struct Script {
    body: &'static str,
    digest: String,
}

/// Writes messages of one or more sessions that are absent.
pub static CREATE_SESSIONS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../lua/create_sessions.lua")));
/// Writes messages of one or more sessions over what may stand there.
pub static REPLACE_SESSIONS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../lua/replace_sessions.lua")));
/// Removes the oldest members of one or more sessions, a bounded number a call.
pub static TRIM_SESSIONS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../lua/trim_sessions.lua")));

/// Notes a finished chunk.
pub static NOTE_CHUNK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../lua/note_chunk.lua")));

/// Measures messages under scratch keys.
pub static MEASURE_MESSAGES: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../lua/measure_messages.lua")));

impl Script {
    fn new(body: &'static str) -> Self {
        Self { body, digest: redis::Script::new(body).get_hash().to_owned() }
    }
}

/// A call of a script, ready to be sent any number of times; it borrows the long texts from the batch.
pub struct ScriptCall<'b> {
    script: &'static Script,
    keys: Vec<&'b [u8]>,
    arguments: Vec<Cow<'b, [u8]>>,
}

impl<'b> ScriptCall<'b> {
    /// A call with neither keys nor arguments yet.
    pub fn new(script: &'static Script) -> Self {
        Self { script, keys: Vec::new(), arguments: Vec::new() }
    }

    /// Adds a key.
    pub fn key(&mut self, key: &'b [u8]) -> &mut Self {
        self.keys.push(key);
        self
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl Into<Cow<'b, [u8]>>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    /// By digest: what is sent first.
    pub fn by_digest(&self) -> Cmd {
        self.command("EVALSHA", self.script.digest.as_bytes())
    }

    /// By text: for a server that does not know the script, which knows it afterwards.
    pub fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.body.as_bytes())
    }

    fn command(&self, name: &str, script: &[u8]) -> Cmd {
        let bytes: usize = self.keys.iter().map(|key| key.len()).sum::<usize>() + self.arguments.iter().map(|argument| argument.len()).sum::<usize>();
        let mut command = Cmd::with_capacity(self.keys.len() + self.arguments.len() + 3, bytes + script.len() + 32);
        command.arg(name).arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(*key);
        }
        for argument in &self.arguments {
            command.arg(&**argument);
        }
        command
    }
}
