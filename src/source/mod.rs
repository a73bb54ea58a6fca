//! PostgreSQL, the truth: connecting, reading the catalogue, planning chunks, and reading them in short snapshots.

mod catalogue;
mod chunk;
mod connection;
mod context;
mod error;
mod plan;
mod range;
mod survey;

pub use catalogue::{Server, Table, Tables, WriteCount};
pub use chunk::{ChunkReader, JoinedRow, LoneContext, Rows};
pub use connection::Source;
pub use error::{SourceError, consequence_of, quoted};
pub use plan::{PlannedChunk, plan_listed};
pub use range::{Part, Scope};
pub use survey::{
    Activity, Borders, Capture, ControlSchema, Exact, Named, OpenTransaction, Publication, Role, Settings, SourceFacts, Storage, Uncounted,
};
