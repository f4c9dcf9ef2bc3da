//! A price file replaced at runtime: it applies to the next exchange, earlier charges stay, a version with equal prices
//! creates no new rate, and an invalid file changes nothing.

use super::client::Ask;
use super::place::{PRICES, Place, Rows, server};
use crate::proxy::Proxy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charges_name_the_first_version_with_their_prices() {
    let server = server().await;
    tokio::task::block_in_place(|| {
        let place = Place::new();
        let proxy = place.start(server.addr(), "x.db", &[]);
        ask(&proxy, 1);
        // By a signal.
        place.write("prices.yaml", &version("prices-2", "0.61"));
        proxy.hang_up();
        in_force(&proxy, "prices-2");
        ask(&proxy, 2);
        // By polling the file.
        place.write("prices.yaml", &version("prices-3", "0.62"));
        in_force(&proxy, "prices-3");
        ask(&proxy, 3);
        let refused = [("file", "prices"), ("outcome", "refused")];
        for (refusals, wrong) in [(1.0, "models: [{name: small, input: -1}]\n"), (2.0, "")] {
            place.write("prices.yaml", wrong);
            proxy.hang_up();
            let page = proxy.page_when("it is refused", |page| {
                page.sum("tokenmeter_config_reloads_total", &refused) >= refusals
            });
            let success = page.sum("tokenmeter_config_last_reload_success", &[("file", "prices")]);
            assert_eq!(success, 0.0, "{wrong:?}");
            assert_eq!(page.sum("tokenmeter_price_book_info", &[("version", "prices-3")]), 1.0);
        }
        ask(&proxy, 4);
        place.write("prices.yaml", &version("prices-4", "0.63"));
        in_force(&proxy, "prices-4");
        ask(&proxy, 5);

        let by_version: Vec<(String, u64)> = place
            .spend("x.db", "version")
            .iter()
            .map(|group| {
                let version = group["version"].as_str().expect("a name").to_owned();
                (version, group["exchanges"].as_u64().expect("a count"))
            })
            .collect();
        let expected = [("prices-1", 2), ("prices-3", 2), ("prices-4", 1)];
        assert_eq!(by_version, expected.map(|(version, count)| (version.to_owned(), count)));
    });
}

fn version(name: &str, output: &str) -> String {
    PRICES.replace("prices-1", name).replace("output: 0.61", &format!("output: {output}"))
}

fn in_force(proxy: &Proxy, version: &str) {
    let wanted = [("version", version), ("currency", "USD")];
    proxy.page_when(version, |page| page.sum("tokenmeter_price_book_info", &wanted) == 1.0);
}

fn ask(proxy: &Proxy, all: u64) {
    assert_eq!(Ask::of("acme", "small").send(proxy.data).status, 200);
    proxy.page_when("it is charged", |page| Rows::of(page).acknowledged == all);
}
