//! The statement of a running month: its CSV is what `spend` prints, and the page has its total.

use std::time::Duration;

use super::kills::load;
use super::place::{Place, Rows, command, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_has_the_numbers_of_spend() {
    let server = server().await;
    let place = Place::new();
    let mut proxy = place.start(server.addr(), "x.db", &[]);
    let load = load(proxy.data, 0);
    tokio::task::block_in_place(|| {
        proxy.page_when("some are on the disk", |page| Rows::of(page).acknowledged >= 50);
        load.abort();
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
    });
    let (ledger, folder) = (place.text("x.db"), place.folder().display().to_string());
    let of_tenant = ["--month", "this", "--tenant", "life-0", "--ledger", &ledger, "--output", &folder];
    let written = command(&[&["statement"][..], &of_tenant].concat());
    let files: Vec<&str> = written.lines().collect();
    let [page, csv] = files[..] else { panic!("two files: {written}") };
    assert!(page.ends_with("-life-0-DRAFT.html") && csv.ends_with("-life-0-DRAFT.csv"), "{written}");
    let read = |path: &str| std::fs::read_to_string(path).expect("a file");

    let spend = ["spend", "--ledger", &ledger, "--billed", "this", "--where", "tenant=life-0"];
    let by = "billed,tenant,day,model,class";
    let rows = command(&[&spend[..], &["--by", by, "--format", "csv", "--columns", "all"]].concat());
    assert_eq!(read(csv), rows);
    let total = command(&[&spend[..], &["--format", "csv", "--columns", "cost"]].concat());
    let total = total.lines().nth(1).expect("a row");
    assert!(
        read(page).contains(&format!("<div class=\"due\">{total} USD</div>")),
        "{total} in {}",
        read(page)
    );

    let before = read(page);
    assert_eq!(command(&[&["statement"][..], &of_tenant].concat()), written);
    assert_eq!(read(page), before);
}
