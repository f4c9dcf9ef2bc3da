//! A damaged ledger is quarantined; a ledger that another process writes is left alone.

use std::time::Duration;

use super::audit::audit;
use super::client::{Ask, Bill};
use super::disk::impaired;
use super::place::{NOTES, Place, Rows, is_up, server};
use crate::proxy::Proxy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_ledger_is_quarantined_at_the_start() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let mut proxy = place.start(server.addr(), "x.db", &[]);
        asked(&proxy, 50);
        proxy.page_when("all is on the disk", |page| Rows::of(page).acknowledged == 50);
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
        let mut content = std::fs::read(place.path("x.db")).expect("the ledger");
        let second = content.len() / 4096 / 2 * 4096;
        content[4096..second].fill(0xa5);
        std::fs::write(place.path("x.db"), &content).expect("it can be written");

        let proxy = place.start(server.addr(), "x.db", &[]);
        let bill = asked(&proxy, 30);
        let page = proxy.page_when("it goes on", |page| Rows::of(page).acknowledged == 30);
        assert!(is_up(&page));
        assert_eq!(page.sum("tokenmeter_ledger_quarantined_total", &[]), 1.0, "{}", proxy.log());
        assert!(page.sum("tokenmeter_ledger_faults_total", &[("fault", "corrupt")]) > 0.0);
        assert_eq!(page.sum("tokenmeter_ledger_gaps_total", &[]), 1.0);
        assert!(proxy.log().contains(".corrupt-"), "the log names the file: {}", proxy.log());
        drop(proxy);
        assert_eq!(Bill::of_report(&place.spend("x.db", "tenant,model")), bill);
        let aside = std::fs::read_dir(place.folder())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.display().to_string().contains("x.db.corrupt-"))
            .expect("it is kept");
        // All but the first page, where SQLite stores the journal mode.
        assert!(
            std::fs::read(aside).expect("it can be read")[4096..] == content[4096..],
            "the file is unchanged"
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_process_proxies_and_waits_for_the_ledger() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let first = place.start(server.addr(), "x.db", &[]);
        first.page_when("it opened the ledger", is_up);
        let second = place.start(server.addr(), "x.db", &["--ledger-wait"]);
        let mut bill = Bill::default();
        for number in 0..60 {
            let proxy = if number % 2 == 0 { &first } else { &second };
            bill.ask(proxy.data, Ask { output: 1 + number, ..Ask::of("acme", "small") });
        }
        let rows = |acknowledged, queued| Rows { acknowledged, queued, shed: 0, lost: 0 };
        first.page_when("its own are on the disk", |page| Rows::of(page) == rows(30, 0));
        second.page_when("the others wait", |page| !is_up(page) && Rows::of(page) == rows(0, 30 + NOTES));
        let locked = [("fault", "locked")];
        second.page_when("it is counted", |page| page.sum("tokenmeter_ledger_faults_total", &locked) > 0.0);
        assert!(impaired(&second).contains("another process"), "{}", impaired(&second));
        first.kill();
        second.page_when("it takes over", |page| is_up(page) && Rows::of(page) == rows(30, 0));
        drop(second);
        assert_eq!(Bill::of_report(&place.spend("x.db", "tenant,model")), bill);
        assert_eq!(audit(&place.path("x.db")).rows(), 60);
    });
}

fn asked(proxy: &Proxy, exchanges: u64) -> Bill {
    let mut bill = Bill::default();
    for number in 0..exchanges {
        bill.ask(proxy.data, Ask { output: 1 + number, ..Ask::of("acme", "small") });
    }
    bill
}
