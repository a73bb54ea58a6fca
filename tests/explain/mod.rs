//! `explain`: one session, both sides of it side by side.

mod page;
mod places;
mod scene;
mod sides;
