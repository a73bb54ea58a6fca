//! What the Redis user may do, found out by doing it where it does nothing: on keys that do not exist.

use redis::Cmd;

use super::{Link, Target, TargetError, link};
use crate::model::Millis;

/// What a command is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Without it there is no copy.
    Copy,
    /// Without it Redis cannot be compared with PostgreSQL afterwards.
    Compare,
}

/// One command that was tried.
#[derive(Debug)]
pub struct TriedCommand {
    /// Its name as the access list has it, in lower case.
    pub name: &'static str,
    /// What it is needed for.
    pub need: Need,
    /// What the server said; an error that is not about rights says that the command may be used.
    pub outcome: Result<(), TargetError>,
}

impl TriedCommand {
    /// Whether the access list refused it, and a copy needs it.
    pub fn is_in_the_way(&self) -> bool {
        self.need == Need::Copy && self.outcome.as_ref().is_err_and(TargetError::lacks_a_right)
    }
}

/// The commands, what each is needed for, and arguments after the key with which they change nothing where no key is.
const ON_A_SESSION_KEY: [(&str, Need, &[&str]); 16] = [
    ("type", Need::Copy, &[]),
    ("strlen", Need::Copy, &[]),
    ("zcard", Need::Copy, &[]),
    ("zrange", Need::Copy, &["0", "0"]),
    ("zrem", Need::Copy, &["x"]),
    ("zadd", Need::Copy, &["XX", "1", "x"]),
    ("set", Need::Copy, &["x", "XX"]),
    ("del", Need::Copy, &[]),
    ("expire", Need::Copy, &["1"]),
    ("pexpiretime", Need::Compare, &[]),
    ("get", Need::Compare, &[]),
    ("mget", Need::Compare, &[]),
    ("zcount", Need::Compare, &["0", "1"]),
    ("zmscore", Need::Compare, &["x"]),
    ("zscore", Need::Compare, &["x"]),
    ("exists", Need::Compare, &[]),
];

impl Target {
    /// The name of the user; an error where the server does not tell.
    ///
    /// # Errors
    /// The user may not ask.
    pub async fn user(&self, link: &Link) -> Result<String, TargetError> {
        let doing = "asking who the user is";
        link::reply(doing, link.call(doing, Cmd::new().arg("ACL").arg("WHOAMI")).await?)
    }

    /// Tries each command that is needed, and writes nothing.
    pub async fn try_commands(&self, link: &Link, now: Millis) -> Vec<TriedCommand> {
        let doing = "trying a command";
        let client = format!("tbmq-migrate:probe:{}:{}", std::process::id(), now.0);
        let session_key = self.prefix.messages(&client);
        let own_key = format!("{}tbmq-migrate:{{check-{}-{}}}:0", self.prefix.as_str(), std::process::id(), now.0);
        let mut commands: Vec<(&'static str, Need, Cmd)> = Vec::new();
        for (name, need, arguments) in ON_A_SESSION_KEY {
            let mut command = Cmd::new();
            command.arg(name.to_uppercase()).arg(&session_key).arg(arguments);
            commands.push((name, need, command));
        }
        let mut own = Cmd::new();
        own.arg("HGETALL").arg(&own_key);
        commands.push(("hgetall", Need::Copy, own));
        const BY_TEXT: &str = "return 1";
        const BY_DIGEST: &str = "0000000000000000000000000000000000000000";
        for (name, script) in [("eval", BY_TEXT), ("evalsha", BY_DIGEST)] {
            let mut command = Cmd::new();
            command.arg(name.to_uppercase()).arg(script).arg(1).arg(&session_key);
            commands.push((name, Need::Copy, command));
        }
        let mut tried = Vec::new();
        for (name, need, command) in commands {
            let outcome = link.call(doing, &command).await.map(drop);
            // Where one waited in vain for the server the next would too.
            let in_vain = matches!(outcome, Err(TargetError::Lost { .. } | TargetError::OutOfMemory { .. } | TargetError::Stopped));
            tried.push(TriedCommand { name, need, outcome });
            if in_vain {
                break;
            }
        }
        tried
    }

    /// Whether the server lets a script use a key that it was not told of, which the broker's own scripts do.
    ///
    /// # Errors
    /// What the server said instead.
    pub async fn try_derived_key(&self, link: &Link, now: Millis) -> Result<(), TargetError> {
        let key = self.prefix.messages(&format!("tbmq-migrate:probe:{}:{}", std::process::id(), now.0));
        let mut command = Cmd::new();
        command.arg("EVAL").arg("return redis.call('EXISTS', KEYS[1] .. '_1')").arg(1).arg(&key);
        // EXISTS is not among the rights of the copy: to be refused it says nothing about keys.
        match link.call("trying a key that a script derives", &command).await {
            Err(error) if !error.lacks_a_right() => Err(error),
            _ => Ok(()),
        }
    }
}
