//! A ledger is shipped to PostgreSQL while both processes are killed: in the end the store has every row once, and both
//! print the same report.

use std::time::Duration;

use chance::Chance;
use rusqlite::{Connection, OpenFlags};

use super::audit::audit;
use super::kills::{all_are_there, load};
use super::place::{Place, Rows, command, is_up, server};
use super::postgresql;

/// A time zone whose date differs from that of UTC for 14 hours of each day.
const ZONE: [&str; 2] = ["--ledger-time-zone", "Pacific/Kiritimati"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn store_has_every_row_once_after_any_kill() {
    let server = server().await;
    let place = Place::new();
    let mut store = tokio::task::block_in_place(postgresql::Server::start);
    let url = tokio::task::block_in_place(|| store.url(&store.database()));
    let mut chance = Chance::new(20_261_122);
    let lives = if chance::is_long() { 100 } else { 10 };
    let (mut acknowledged, mut fallen) = (Vec::new(), 0);
    for life in 0..lives {
        let proxy = place.start(server.addr(), "x.db", &["--ledger-ship", &url, ZONE[0], ZONE[1]]);
        let load = load(proxy.data, life);
        let [before, after] = [1 + chance.below(150), chance.below(150)];
        let falls = chance.below(3) == 0;
        let page = tokio::task::block_in_place(|| {
            let wanted = |count: u64| {
                proxy.page_when("some are on the disk", |page| Rows::of(page).acknowledged >= count)
            };
            let page = wanted(before);
            if falls {
                store.kill();
                store.up();
                fallen += 1;
                return wanted(Rows::of(&page).acknowledged + after);
            }
            page
        });
        proxy.kill();
        load.abort();
        acknowledged.push(Rows::of(&page).acknowledged);
    }
    assert!(fallen > 0, "the store is killed too");
    tokio::task::block_in_place(|| {
        let mut proxy = place.start(server.addr(), "x.db", &["--ledger-ship", &url, ZONE[0], ZONE[1]]);
        proxy.page_when("all is shipped", |page| {
            let rows = |name: &str| page.sum(&format!("tokenmeter_ship_{name}"), &[]);
            is_up(page) && rows("up") == 1.0 && rows("rows_total") > 0.0 && rows("pending_rows") == 0.0
        });
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
        assert!(
            !proxy.log().contains(postgresql::PASSWORD),
            "the log contains the password: {}",
            proxy.log()
        );

        let found = audit(&place.path("x.db"));
        all_are_there(&found, &acknowledged);
        let local = Connection::open_with_flags(place.path("x.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
        let local = local.expect("a database");
        let mut ids = local.prepare("SELECT id FROM exchange ORDER BY id").expect("SQL");
        let ids: Vec<Vec<u8>> =
            ids.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("rows");
        let database = url.rsplit('/').next().expect("a name");
        let mut central = store.client(database).expect("it runs");
        let theirs = "SELECT uuid_send(id::uuid) FROM tokenmeter.exchange ORDER BY id";
        let theirs = central.query(theirs, &[]).expect("SQL");
        let theirs: Vec<Vec<u8>> = theirs.iter().map(|row| row.get(0)).collect();
        assert!(ids == theirs, "{} rows here, {} there", ids.len(), theirs.len());

        for flags in [
            &["--by", "tenant,model,day", "--format", "json"][..],
            &["--by", "tenant,ending,version", "--format", "csv"],
            &["--by", "consumer,response_model", "--format", "table"],
            &["--format", "focus"],
        ] {
            let said = |ledger: &str| {
                let text = command(&[&["spend", "--ledger", ledger], flags].concat());
                // Only the report of the file names the store.
                let lines = text.lines().filter(|line| !line.contains("the ledger is shipped to "));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(said(&place.text("x.db")), said(&url), "{flags:?}");
        }
        let verified = command(&["ledger", "verify", "--ledger", &url]);
        assert!(verified.contains("ok  the central store: "), "{verified}");
    });
}
