//! The Lua scripts against a real Redis.

mod broker;
mod heads;
mod note_chunk;
mod on_a_cluster;
mod read_sessions;
mod recorded;
mod trim_sessions;
mod writing;

use std::io::Write;
use std::net::TcpStream;

use redis::{Connection, RedisResult, Value};

use crate::support::keyspace::Keyspace;
use crate::support::poll::wait_until;
use crate::support::redis::Redis;

/// A deadline that no test lives to see: the year 2100, in Unix ms.
const FAR: i64 = 4_102_444_800_000;

const ADD_MESSAGES: &str = include_str!("../../lua/add_messages.lua");
const GET_MESSAGES: &str = include_str!("../../lua/get_messages.lua");
const NOTE_CHUNK: &str = include_str!("../../lua/note_chunk.lua");
const READ_SESSIONS: &str = include_str!("../../lua/read_sessions.lua");
const REMOVE_MESSAGE: &str = include_str!("../../lua/remove_message.lua");
const REMOVE_MESSAGES: &str = include_str!("../../lua/remove_messages.lua");
const UPDATE_PACKET_TYPE: &str = include_str!("../../lua/update_packet_type.lua");
const CREATE_SESSIONS: &str = include_str!("../../lua/create_sessions.lua");
const REPLACE_SESSIONS: &str = include_str!("../../lua/replace_sessions.lua");
const TRIM_SESSIONS: &str = include_str!("../../lua/trim_sessions.lua");

/// One call of a script.
#[derive(Clone)]
struct Call {
    script: &'static str,
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Call {
    fn new(script: &'static str) -> Self {
        Self { script, keys: Vec::new(), values: Vec::new() }
    }

    fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.keys.push(key.as_ref().to_vec());
        self
    }

    fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.values.push(value.as_ref().to_vec());
        self
    }

    fn command(&self) -> redis::Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script).arg(self.keys.len()).arg(&self.keys).arg(&self.values);
        command
    }

    fn send(&self, connection: &mut Connection) -> RedisResult<Value> {
        self.command().query(connection)
    }

    /// The message of the server's refusal; panics when the call succeeds.
    fn refusal(&self, connection: &mut Connection) -> String {
        match self.send(connection) {
            Ok(reply) => panic!("not refused: {reply:?}"),
            Err(error) => error.to_string(),
        }
    }
}

/// A call whose reply nobody reads: the connection is closed right after it was sent.
fn send_and_lose_the_reply(server: &Redis, call: &Call) {
    let mut socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    socket.write_all(&call.command().get_packed_command()).unwrap();
}

/// Asserts that `call`, on top of what `prepare` makes, gives one and the same state when it is sent once, twice, and
/// again after its reply was lost; gives that state.
fn assert_repeatable(call: &Call, prepare: impl Fn(&mut Connection)) -> Keyspace {
    let server = Redis::start();
    let mut connection = server.connection();
    prepare(&mut connection);
    let before = server.keyspace();
    let reply = call.send(&mut connection).unwrap();
    let once = server.keyspace();
    assert_ne!(once, before, "the call changes something");
    call.send(&mut connection).unwrap();
    assert_eq!(server.keyspace(), once, "after the second call");

    redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
    prepare(&mut connection);
    send_and_lose_the_reply(&server, call);
    wait_until("the lost call to take effect", || server.keyspace() == once);
    let again = call.send(&mut connection).unwrap();
    assert_eq!(server.keyspace(), once, "after a lost reply");
    assert_eq!(again, reply, "the repeated call answers as the first did");
    once
}

/// The key of a session's sorted set.
fn set_of(client: &str) -> String {
    format!("{{{client}}}_messages")
}

fn last_of(client: &str) -> String {
    format!("{{{client}}}_last_packet_id")
}

fn message_of(client: &str, packet_id: u32) -> String {
    format!("{{{client}}}_messages_{packet_id}")
}

fn run(connection: &mut Connection, line: &[&str]) {
    redis::cmd(line[0]).arg(&line[1..]).exec(connection).unwrap();
}

/// The reply of integers in (lists of) lists.
fn numbers(list: &[i64]) -> Value {
    Value::Array(list.iter().map(|number| Value::Int(*number)).collect())
}

fn lists(of: &[&[i64]]) -> Value {
    Value::Array(of.iter().map(|list| numbers(list)).collect())
}
