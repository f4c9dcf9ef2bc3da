//! Servers are recognised by the names of public images.

mod images;
mod recorded;

use images::IMAGES;
use inject::inject;
use recorded::config;

#[test]
fn images_have_their_servers() {
    let config = config();
    for ((name, review), (_, _, server)) in images::reviews().iter().zip(IMAGES) {
        let pod =
            inject(&review["request"]["object"], &config).map(|injected| injected.pod).unwrap_or_default();
        let env = pod["spec"]["initContainers"][0]["env"].as_array().cloned().unwrap_or_default();
        let kind = env.iter().find(|variable| variable["name"] == "TOKENMETER_KIND");
        assert_eq!(kind.map_or("", |kind| kind["value"].as_str().expect("text")), server, "{name}");
    }
}
