//! Months are closed and charges adjusted at the central store by commands that are killed at random; on the file of a
//! ledger that is shipped they fail and name the command to run.

use std::process::{Command, Stdio};
use std::time::Duration;

use chance::Chance;

use super::fleet::let_open_months_be_closed;
use super::kills::load;
use super::place::{Place, Rows, command, is_up, server};
use super::postgresql;

/// Runs a command and kills it after at most some milliseconds.
fn killed(arguments: &[&str], after_ms: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(Duration::from_millis(after_ms));
    // It may have ended.
    let _ = child.kill();
    child.wait().expect("it ends");
}

fn refusal(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tokenmeter")).args(arguments).output().expect("the binary runs");
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn killed_store_commands_lose_and_double_nothing() {
    let server = server().await;
    let place = Place::new();
    let store = tokio::task::block_in_place(postgresql::Server::start);
    let url = tokio::task::block_in_place(|| store.url(&store.database()));
    let mut proxy = place.start(server.addr(), "x.db", &["--ledger-ship", &url]);
    let load = load(proxy.data, 1);
    tokio::task::block_in_place(|| {
        proxy.page_when("some are on the disk", |page| {
            is_up(page) && Rows::of(page).acknowledged > 20 && page.sum("tokenmeter_ship_up", &[]) == 1.0
        });
        load.abort();
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());

        let mut owner = store.client(url.rsplit('/').next().expect("a name")).expect("it runs");
        let_open_months_be_closed(&mut owner);
        let month = "SELECT to_char(max(month), 'YYYY-MM') FROM tokenmeter.file";
        let month: String = owner.query_one(month, &[]).expect("SQL").get(0);
        let month = month.as_str();
        let (ledger, prices) = (place.text("x.db"), place.text("prices.yaml"));
        let adjust = ["adjust", "--tenant", "acme", "--amount", "-50", "--currency", "USD", "--month", month];
        let adjust = [&adjust[..], &["--reason", "outage"]].concat();
        let reprice = ["reprice", "--since", month, "--until", "2999-01", "--prices", &prices];
        let mut chance = Chance::new(20_261_127);
        let kills = if chance::is_long() { 100 } else { 6 };
        for words in [&adjust[..], &reprice, &["close", month]] {
            let of = |ledger| [&["ledger"], words, &["--ledger", ledger]].concat();
            let said = refusal(&of(&ledger));
            assert!(said.contains(&format!("`tokenmeter ledger {}", words[0])), "{said}");
            assert!(said.contains("--ledger postgres://") && !said.contains(postgresql::PASSWORD), "{said}");
            for _ in 0..kills {
                killed(&of(&url), chance.below(120));
            }
            command(&of(&url));
        }
        let said = command(&["ledger", "close", month, "--ledger", &url]);
        assert!(said.contains("was already closed"), "{said}");
        let by = ["--by", "tenant,model,entry,class", "--format", "csv"];
        let spend = command(&[&["spend", "--ledger", &url, "--month", month], &by[..]].concat());
        let adjustments: Vec<&str> = spend.lines().filter(|line| line.contains("__adjustment__")).collect();
        assert!(
            adjustments[0].starts_with("acme,__adjustment__,outage,correction,0,0,0,-50.00,USD"),
            "{spend}"
        );
        assert_eq!(adjustments.len(), 1, "{spend}");
        let focus = command(&["spend", "--ledger", &url, "--billed", month, "--format", "focus"]);
        assert!(focus.contains("Adjustment: outage"), "{focus}");
        let verified = command(&["ledger", "verify", "--ledger", &url]);
        assert!(verified.contains("digest "), "{verified}");
        let said = refusal(&["ledger", "backup", &place.text("copy"), "--ledger", &url]);
        assert!(said.contains("pg_dump --format=custom") && !said.contains(postgresql::PASSWORD), "{said}");
    });
}
