//! Sessions that never hold still for long enough, and transactions that do not end.

use std::thread::JoinHandle;

use sqlx::{Connection as _, PgConnection};

use super::{Carried, assert_found, findings, planted};
use crate::sessions::Sessions;
use crate::support::poll::wait_until;
use crate::support::postgres::Database;
use crate::support::tool::Outcome;

/// Changes rows of a session as fast as the server can, in PostgreSQL alone.
struct Restless {
    database: Database,
    threads: Vec<JoinHandle<()>>,
}

impl Restless {
    fn start(database: &Database, client: &str) -> Self {
        database.psql("create table rest ()");
        // Two, so that one of them is at work whatever the machine is busy with.
        let threads = (0..2).map(|serial| {
            let database = database.clone();
            let own = format!("client_id = '{client}' and serial_number = {serial}");
            std::thread::spawn(move || {
                database.psql(&format!(
                    "do $$ begin
                         for number in 1..10000000 loop
                             update device_publish_msg set topic = 'moved/' || number where {own};
                             commit;
                             exit when exists (select from rest);
                         end loop;
                     end $$"
                ));
            })
        });
        let threads = threads.collect();
        wait_until("the session to move", || {
            let moved = "select count(*) from device_publish_msg where topic like 'moved/%'";
            database.psql(moved) == "2"
        });
        Self { database: database.clone(), threads }
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        self.database.psql("insert into rest default values");
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn verify(carried: &Carried) -> Outcome {
    carried.verify().args(["--settle-timeout", "1s", "--report"]).arg(carried.report_file()).run()
}

#[test]
fn a_session_that_never_holds_still_is_not_checked_and_never_called_equal() {
    let carried = Carried::new(&Sessions::new(20, 6));
    let restless = Restless::start(&carried.database, "c-0015");
    let outcome = verify(&carried);
    assert_eq!(outcome.code, Some(6), "{outcome:#?}");
    let report = outcome.json();
    let figures = ["sessions_compared", "equal_sessions", "differing_sessions", "not_checked"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(figures, [20, 19, 0, 1], "{report:#}");
    assert_eq!((&report["findings"], report["messages_compared"].as_u64()), (&serde_json::json!({}), Some(19 * 6)));
    assert!(report["next_steps"].to_string().contains("never held still"), "{report:#}");
    assert!(findings(&carried.report_file()).is_empty());

    // Differences elsewhere are found all the same, and say more.
    carried.plant();
    let outcome = verify(&carried);
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    assert_eq!(findings(&carried.report_file()), planted());
    assert_eq!((&outcome.json()["not_checked"], &outcome.json()["differing_sessions"]), (&1.into(), &4.into()));

    // As soon as it holds still it is called what it is.
    drop(restless);
    let outcome = verify(&carried);
    let mut expected = planted();
    expected.extend([(); 2].map(|()| ("c-0015".to_owned(), "different_field".to_owned())));
    expected.sort();
    assert_found(&outcome, &carried.report_file(), &expected);
}

#[test]
fn a_transaction_that_stays_open_keeps_differences_from_counting_until_it_ends() {
    let carried = Carried::new(&Sessions::new(20, 6));
    carried.plant();
    let (pid, outcome, after) = block_on(async {
        let mut writer = PgConnection::connect(&carried.database.url).await.unwrap();
        sqlx::raw_sql("begin; insert into device_session_ctx values ('newcomer', 1, null, null)").execute(&mut writer).await.unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut writer).await.unwrap();
        let outcome = verify(&carried);
        // One that ends in time is waited for.
        let waiting = carried.verify().args(["--settle-timeout", "60s", "--report"]).arg(carried.report_file()).spawn();
        wait_until("the comparison to look for writers", || {
            let looks = "select count(*) from pg_stat_activity where application_name = 'tbmq-migrate' and query like '%RowExclusiveLock%' and datname = current_database()";
            carried.database.psql(looks) != "0"
        });
        sqlx::raw_sql("rollback").execute(&mut writer).await.unwrap();
        (pid, outcome, waiting.wait())
    });
    assert_eq!(outcome.code, Some(6), "{outcome:#?}");
    let report = outcome.json();
    assert_eq!((&report["not_checked"], &report["differing_sessions"]), (&4.into(), &0.into()), "{report:#}");
    assert!(outcome.stderr.contains(&format!("(pid {pid})")), "{}", outcome.stderr);
    assert_found(&after, &carried.report_file(), &planted());
}
