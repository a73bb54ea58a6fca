//! Reading sessions and making Redis equal to them: what every stage that writes has in common.

mod chunk;
mod clock;
mod error;
mod meter;
mod pace;
mod sender;
mod team;

pub use chunk::{Copier, Job};
pub use clock::Clock;
pub use error::CopyError;
pub use meter::Meter;
pub use pace::Pace;
pub use sender::InFlight;
pub use team::{ChunkWork, Team};
