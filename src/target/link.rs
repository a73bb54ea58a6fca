//! A connection that comes back: every command is tried again, within limits, until its outcome is known.
//!
//! A time-out means that the outcome is unknown. All that is sent here says what the state *is*, so sending it again is
//! right whatever happened to the first try.

use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::sync::Mutex;

use super::TargetError;
use super::error::Remedy;
use super::patience::{Patience, pauses};
use super::place::{Connection, Place, Topology};
use super::script::ScriptCall;
use crate::model::Millis;

/// One connection to the session keys, of whatever topology.
pub struct Link {
    place: Arc<Place>,
    topology: Topology,
    patience: Arc<Patience>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// Grows with each connection, so that one failure does not throw the next connection away.
    generation: u64,
}

impl Link {
    pub(super) fn new(place: Arc<Place>, topology: Topology, patience: Arc<Patience>) -> Self {
        Self { place, topology, patience, current: Mutex::default() }
    }

    /// Calls a script until its reply is there.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn script(&self, doing: &'static str, call: &ScriptCall<'_>) -> Result<Value, TargetError> {
        match self.attempt(doing, &call.by_digest()).await {
            Err(Failure::UnknownScript) => match self.attempt(doing, &call.by_text()).await {
                Err(Failure::UnknownScript) => Err(TargetError::Reply { doing }),
                other => other.map_err(Failure::into_error),
            },
            other => other.map_err(Failure::into_error),
        }
    }

    /// Sends a command until its reply is there.
    ///
    /// # Errors
    /// What waiting does not mend, at once; a server that is lost or full, after the limit of patience.
    pub async fn call(&self, doing: &'static str, command: &Cmd) -> Result<Value, TargetError> {
        self.attempt(doing, command).await.map_err(Failure::into_error)
    }

    /// Sends commands that only read, of one slot on a cluster, in one go; the replies come in their order. A command that
    /// does not fit the type of its key replies `None`.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub(super) async fn read_all(&self, doing: &'static str, commands: Vec<Cmd>) -> Result<Vec<Option<Value>>, TargetError> {
        let mut pipeline = redis::Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command);
        }
        pipeline.ignore_errors();
        let at_once = tokio::select! {
            at_once = self.send_pipeline(&pipeline) => at_once,
            () = self.patience.over() => return Err(TargetError::Stopped),
        };
        let fits = |reply: &RedisResult<Value>| reply.as_ref().err().is_none_or(is_wrong_type);
        if let Some(replies) = at_once.filter(|replies| replies.len() == pipeline.len() && replies.iter().all(fits)) {
            return Ok(replies.into_iter().map(RedisResult::ok).collect());
        }
        // A connection that broke, a slot on its way to another node: one by one, with all the patience there is.
        let mut replies = Vec::with_capacity(pipeline.len());
        for command in pipeline.cmd_iter() {
            replies.push(match self.call(doing, command).await {
                Ok(value) => Some(value),
                Err(TargetError::Command { source, .. }) if is_wrong_type(&source) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(replies)
    }

    /// Sends a pipeline once; `None` when that fails as a whole.
    async fn send_pipeline(&self, pipeline: &redis::Pipeline) -> Option<Vec<RedisResult<Value>>> {
        let (connection, generation) = self.connection().await.ok()?;
        let replies = match connection {
            Connection::Single(mut connection) => pipeline.query_async(&mut connection).await,
            Connection::Cluster(mut connection) => pipeline.query_async(&mut connection).await,
        };
        if replies.is_err() {
            self.discard(generation).await;
        }
        replies.ok()
    }

    /// The server's clock; on a cluster that of any node.
    ///
    /// # Errors
    /// See [`Link::call`].
    pub async fn time(&self) -> Result<Millis, TargetError> {
        let doing = "asking for the time";
        let (seconds, micros): (i64, i64) = reply(doing, self.call(doing, Cmd::new().arg("TIME")).await?)?;
        Ok(Millis(seconds * 1000 + micros / 1000))
    }

    async fn attempt(&self, doing: &'static str, command: &Cmd) -> Result<Value, Failure> {
        let mut since = None;
        let mut pauses = pauses();
        loop {
            let outcome = tokio::select! {
                outcome = self.once(command) => outcome,
                () = self.patience.over() => return Err(Failure::Error(TargetError::Stopped)),
            };
            let (error, generation) = match outcome {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            let remedy = Remedy::of(&error);
            let started = *since.get_or_insert_with(Instant::now);
            match remedy {
                Remedy::LoadScript => return Err(Failure::UnknownScript),
                Remedy::GiveUp => return Err(Failure::Error(TargetError::Command { doing, source: error })),
                Remedy::Reconnect => {
                    self.discard(generation).await;
                    self.patience.notice("Redis cannot be reached", started, &error);
                }
                Remedy::Retry => self.patience.notice("Redis is not ready", started, &error),
                Remedy::WaitForRoom => self.patience.notice("Redis is out of memory, waiting for room", started, &error),
            }
            let waited = started.elapsed();
            if waited >= self.patience.limit {
                return Err(Failure::Error(match remedy {
                    Remedy::WaitForRoom => TargetError::OutOfMemory { waited, source: error },
                    _ => TargetError::Lost { doing, waited, source: error },
                }));
            }
            let pause = pauses.next().unwrap_or_default().min(self.patience.limit - waited);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.patience.stop.cancelled() => return Err(Failure::Error(TargetError::Stopped)),
            }
        }
    }

    /// Sends it once; an error comes with the connection that met it.
    async fn once(&self, command: &Cmd) -> Result<Value, (RedisError, u64)> {
        let (connection, generation) = self.connection().await.map_err(|error| (error, 0))?;
        send(connection, command).await.map_err(|error| (error, generation))
    }

    async fn connection(&self) -> RedisResult<(Connection, u64)> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((connection.clone(), current.generation));
        }
        let connection = self.place.connect(self.topology).await?;
        current.generation += 1;
        current.connection = Some(connection.clone());
        Ok((connection, current.generation))
    }

    async fn discard(&self, generation: u64) {
        let mut current = self.current.lock().await;
        if current.generation == generation {
            current.connection = None;
        }
    }
}

/// Sends a command once.
pub(super) async fn send(connection: Connection, command: &Cmd) -> RedisResult<Value> {
    match connection {
        Connection::Single(mut connection) => command.query_async(&mut connection).await,
        Connection::Cluster(mut connection) => command.query_async(&mut connection).await,
    }
}

fn is_wrong_type(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}

enum Failure {
    UnknownScript,
    Error(TargetError),
}

impl Failure {
    fn into_error(self) -> TargetError {
        match self {
            Self::UnknownScript => TargetError::Reply { doing: "calling a script" },
            Self::Error(error) => error,
        }
    }
}

/// A reply as the type that the command gives.
pub(super) fn reply<T: redis::FromRedisValue>(doing: &'static str, value: Value) -> Result<T, TargetError> {
    redis::from_redis_value(value).map_err(|_| TargetError::Reply { doing })
}

impl TargetError {
    /// A command that is sent once, without patience.
    pub(super) fn command(doing: &'static str) -> impl FnOnce(RedisError) -> Self {
        move |source| Self::Command { doing, source }
    }
}
