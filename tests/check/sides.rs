//! The page as a whole: what is ready, sides that cannot be reached, the two forms, the settings.

use serde_json::json;

use super::{between, look, look_by, of, read, ready};
use crate::support::poll::free_port;
use crate::support::tool::Tool;

#[test]
fn two_sides_that_are_ready_have_no_blocker_and_a_forecast_of_every_row() {
    let scene = ready();
    let page = look(&scene);
    eprintln!("{:#}", page.document);
    eprintln!("{}", Tool::new().args(["check", "--postgres-url", &scene.database.url, "--redis-url", &scene.redis.url()]).run().stdout);
}
