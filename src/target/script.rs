//! The scripts of the tool: how one is called and what happens when a server does not know it.

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

impl Script {
    fn new(body: &'static str) -> Self {
        Self { body, digest: redis::Script::new(body).get_hash().to_owned() }
    }
}

/// A call of a script, ready to be sent any number of times.
pub struct ScriptCall {
    script: &'static Script,
    /// The keys, then the arguments.
    tail: Vec<u8>,
    ends: Vec<usize>,
    keys: usize,
}

impl ScriptCall {
    /// A call with neither keys nor arguments yet.
    pub fn new(script: &'static Script) -> Self {
        Self { script, tail: Vec::new(), ends: Vec::new(), keys: 0 }
    }

    /// Adds a key; all keys come before the first argument.
    pub fn key(&mut self, key: &[u8]) -> &mut Self {
        debug_assert_eq!(self.keys, self.ends.len(), "a key after an argument");
        self.keys += 1;
        self.arg(key)
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: &[u8]) -> &mut Self {
        self.tail.extend_from_slice(arg);
        self.ends.push(self.tail.len());
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
        let mut command = Cmd::with_capacity(self.ends.len() + 3, self.tail.len() + script.len() + 32);
        command.arg(name).arg(script).arg(self.keys);
        let mut from = 0;
        for &end in &self.ends {
            command.arg(&self.tail[from..end]);
            from = end;
        }
        command
    }
}
