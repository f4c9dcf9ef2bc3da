//! A fleet from outside: five proxies and one store; two are killed and never restarted, one is restored from a backup,
//! one ships after the month was closed. The closed month and the late rows are, to the last digit, the sum of the
//! usage that clients saw, without the rows that the killed ones had not shipped, which the report names as a gap.

use std::time::{Duration, Instant};

use super::client::{Ask, Bill};
use super::place::{Place, command, server};
use super::postgresql;
use crate::proxy::Proxy;

/// Stops a proxy gracefully, so that it ships all rows.
fn end(mut proxy: Proxy) {
    proxy.terminate();
    assert!(proxy.ended(Duration::from_secs(30)).success(), "{}", proxy.log());
}

fn ask(bill: &mut Bill, proxy: &Proxy, tenant: &str, requests: u64) {
    for number in 0..requests {
        let model = if number % 3 == 0 { "large" } else { "small" };
        bill.ask(proxy.data, Ask { output: 3 + number, stream: number % 2 == 0, ..Ask::of(tenant, model) });
    }
}

/// The report of a store, with a flag, as a bill.
fn reported(url: &str, flags: &[&str]) -> (Bill, String) {
    let all = ["spend", "--ledger", url, "--by", "tenant,model", "--format", "json"];
    let text = command(&[&all[..], flags].concat());
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    (Bill::of_report(report["rows"].as_array().expect("rows")), report["notes"].to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn closed_and_late_rows_equal_client_usage() {
    let server = server().await;
    let (place, upstream) = (Place::new(), server.addr());
    let store = tokio::task::block_in_place(postgresql::Server::start);
    tokio::task::block_in_place(|| {
        let url = store.url(&store.database());
        let mut owner = store.client(url.rsplit('/').next().expect("a name")).expect("it runs");
        // A month begins and ends there 14 hours before that of UTC.
        let zone = ["--ledger-time-zone", "Pacific/Kiritimati"];
        let start =
            |ledger: &str| place.start(upstream, ledger, &[&zone[..], &["--ledger-ship", &url]].concat());
        let (mut bill, mut late, mut lost) = (Bill::default(), Bill::default(), Bill::default());

        let healthy = start("healthy.db");
        ask(&mut bill, &healthy, "healthy", 9);
        let killed = ["killed-1", "killed-2"].map(|name| (name, start(&format!("{name}.db"))));
        for (tenant, proxy) in &killed {
            ask(&mut bill, proxy, tenant, 6);
        }
        let until = Instant::now() + Duration::from_secs(60);
        let shipped = "SELECT count(*) FROM tokenmeter.exchange WHERE tenant LIKE 'killed%'";
        // The schema may not be there yet.
        while owner.query_one(shipped, &[]).map_or(0_i64, |row| row.get(0)) < 12 {
            assert!(Instant::now() < until, "not shipped: {}", killed[0].1.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        for (_, proxy) in killed {
            ask(&mut lost, &proxy, "lost", 5);
            proxy.kill();
        }

        let restored = start("restored.db");
        ask(&mut bill, &restored, "restored", 6);
        end(restored);
        let backup = place.text("backup");
        std::fs::create_dir(&backup).expect("a folder can be made");
        command(&["ledger", "backup", &backup, "--ledger", &place.text("restored.db")]);
        let restored = start("restored.db");
        // Afterwards in the store only.
        ask(&mut bill, &restored, "restored-lost", 5);
        end(restored);
        std::fs::copy(place.path("backup").join("restored.db"), place.path("restored.db"))
            .expect("it is there");
        let restored = start("restored.db");
        ask(&mut bill, &restored, "restored", 4);
        end(restored);
        let again = "SELECT tokenmeter.send_again(instance) FROM tokenmeter.exchange WHERE tenant = 'restored' LIMIT 1";
        owner.batch_execute(again).expect("SQL");
        end(start("restored.db"));

        // Nothing listens there.
        let nowhere = ["--ledger-ship", "postgres://meter@127.0.0.1:9/spend"];
        let late_proxy = place.start(upstream, "late.db", &[&zone[..], &nowhere].concat());
        ask(&mut late, &late_proxy, "late", 7);
        let mut late_proxy = late_proxy;
        late_proxy.terminate();
        late_proxy.ended(Duration::from_secs(30));
        end(healthy);

        // The month of the test is not over.
        let_open_months_be_closed(&mut owner);
        let months = "SELECT to_char(max(month), 'YYYY-MM'), to_char(max(month) + interval '1 month', 'YYYY-MM') \
                      FROM tokenmeter.file";
        let months = owner.query_one(months, &[]).expect("SQL");
        let (month, next): (String, String) = (months.get(0), months.get(1));
        command(&["ledger", "close", &month, "--ledger", &url, "--who", "finance"]);
        end(start("late.db"));
        let healthy = start("healthy.db");
        ask(&mut late, &healthy, "healthy", 2);
        end(healthy);

        // Of the killed, a slow test may have shipped some.
        let in_month = |flags: &[&str]| {
            let (mut found, notes) = reported(&url, flags);
            found.0.retain(|(tenant, model), sum| {
                let asked = lost.0.get(&(tenant.clone(), model.clone()));
                assert!(tenant != "lost" || asked.is_some_and(|asked| sum.exchanges <= asked.exchanges));
                tenant != "lost"
            });
            (found, notes)
        };
        let (found, notes) = in_month(&["--billed", &month]);
        assert_eq!(found, bill);
        assert!(notes.contains("(unshipped)"), "{notes}");
        assert_eq!(in_month(&["--billed", &next]).0, late);
        for ((tenant, model), sum) in late.0 {
            let all = bill.0.entry((tenant, model)).or_default();
            all.exchanges += sum.exchanges;
            all.input += sum.input;
            all.cached += sum.cached;
            all.output += sum.output;
            all.pico = Some(all.pico.unwrap_or(0) + sum.pico.expect("it has a price"));
        }
        assert_eq!(in_month(&[]).0, bill);
        let unshipped = "SELECT count(*) FROM tokenmeter.gaps WHERE why = 'unshipped'";
        assert_eq!(owner.query_one(unshipped, &[]).expect("SQL").get::<_, i64>(0), 2, "the killed");
        command(&["ledger", "verify", "--ledger", &url]);
    });
}

/// Lets a store close months that are not over: its clock cannot be changed.
pub(super) fn let_open_months_be_closed(owner: &mut postgres::Client) {
    let close = "SELECT pg_get_functiondef('tokenmeter.close(text, text)'::regprocedure)";
    let close: String = owner.query_one(close, &[]).expect("SQL").get(0);
    let is_over = "tokenmeter.month_end(first) > now()";
    assert!(close.contains(is_over), "{close}");
    owner.batch_execute(&close.replace(is_over, "false")).expect("SQL");
}
