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
        let adjust = |ledger: &str| {
            ["ledger", "adjust", "--tenant", "acme", "--amount", "-50", "--currency", "USD", "--month", month]
                .into_iter()
                .chain(["--reason", "outage", "--ledger"])
                .map(str::to_owned)
                .chain([ledger.to_owned()])
                .collect::<Vec<_>>()
        };
        let reprice = |ledger: &str| {
            [
                "ledger", "reprice", "--since", month, "--until", "2999-01", "--prices", &prices, "--ledger",
                ledger,
            ]
            .map(str::to_owned)
            .to_vec()
        };
        let close = |ledger: &str| ["ledger", "close", month, "--ledger", ledger].map(str::to_owned).to_vec();
        let words = |text: &[String]| -> Vec<String> { text.to_vec() };
        let mut chance = Chance::new(20_261_127);
        let kills = if chance::is_long() { 100 } else { 6 };
        for (name, on) in
            [("adjust", &adjust as &dyn Fn(&str) -> Vec<String>), ("reprice", &reprice), ("close", &close)]
        {
            let of_file = words(&on(&ledger));
            let said = refusal(&of_file.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(said.contains(&format!("`tokenmeter ledger {name}")), "{said}");
            assert!(said.contains("--ledger postgres://") && !said.contains(postgresql::PASSWORD), "{said}");
            let of_store = words(&on(&url));
            let of_store: Vec<&str> = of_store.iter().map(String::as_str).collect();
            for _ in 0..kills {
                killed(&of_store, chance.below(120));
            }
            command(&of_store);
        }
        let said = command(&["ledger", "close", month, "--ledger", &url]);
        assert!(said.contains("was already closed"), "{said}");
        let csv = [
            "spend",
            "--ledger",
            &url,
            "--month",
            month,
            "--by",
            "tenant,model,entry,class",
            "--format",
            "csv",
        ];
        let spend = command(&csv);
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
