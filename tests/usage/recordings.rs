//! Recorded streams with usage, as if the proxy had requested it.

use harness::{Transcript, edited, naive};
use usage::{AddedOptions, UsageFilter};

const END: AddedOptions = AddedOptions { include: true, continuous: false, timings: false };
const BOTH: AddedOptions = AddedOptions { include: true, continuous: true, timings: false };

const RECORDED: [(&str, AddedOptions); 6] = [
    ("vllm-0.32.0/chat-stream-usage", END),
    ("vllm-0.32.0/chat-stream-continuous-usage", BOTH),
    ("vllm-0.32.0/chat-stream-n2-continuous", BOTH),
    ("vllm-0.32.0/completion-stream-continuous-usage", BOTH),
    ("llamacpp-0.7.0/chat-stream-usage", END),
    ("llamacpp-0.7.0/chat-stream-n3", END),
];

#[test]
fn every_cut_in_two_agrees_with_the_oracle() {
    for (name, added) in RECORDED {
        let recorded = Transcript::named(name);
        let (body, dialect) = (&recorded.body[..], recorded.dialect);
        let twin = naive::edit(body, added);
        let text = String::from_utf8_lossy(&twin);
        assert!(!text.contains("\"usage\":{"), "{name}: {text}");
        assert!(twin.len() < body.len() && twin.ends_with(b"data: [DONE]\n\n"), "{name}");
        for at in 0..=body.len() {
            let (head, tail) = body.split_at(at);
            let got = edited::edited(dialect, Some(added), [head, tail]);
            assert_eq!((got.missed, got.unasked), (0, false), "{name} cut at {at}");
            assert!(got.body == twin, "{name} cut at {at}: {}", String::from_utf8_lossy(&got.body));
        }
        for step in [1, 2, 7, 64, 1000] {
            let got = edited::edited(dialect, Some(added), body.chunks(step));
            assert!(got.missed == 0 && got.body == twin, "{name} in steps of {step}");
        }
        let reads = recorded.reads().into_iter().map(|(_, slice)| slice);
        assert!(edited::edited(dialect, Some(added), reads).body == twin, "{name} as it was read");
    }
}

#[test]
fn usage_of_the_client_stays() {
    for (name, _) in RECORDED {
        let recorded = Transcript::named(name);
        for step in [1, 64, usize::MAX] {
            let got = edited::edited(recorded.dialect, None, recorded.body.chunks(step));
            assert!(got.body == recorded.body && got.unasked, "{name} in steps of {step}");
        }
    }
}

/// Every recorded stream with requested usage, as if the proxy had requested it.
#[test]
fn recordings_without_usage_agree_with_the_oracle() {
    let mut seen = 0;
    for recorded in Transcript::all() {
        let request = String::from_utf8_lossy(&recorded.request);
        let asks = |name: &str| request.contains(&format!("\"{name}\": true"));
        let may_ask =
            matches!(recorded.dialect, scan::Dialect::OpenaiChat | scan::Dialect::OpenaiCompletions);
        // That server sends usage to every client, and its usage stays.
        let forced = recorded.name.starts_with("vllm-0.32.0/opt-");
        if !may_ask || forced || recorded.framing != scan::Framing::Sse || !asks("include_usage") {
            continue;
        }
        seen += 1;
        let added =
            AddedOptions { include: true, continuous: asks("continuous_usage_stats"), timings: false };
        let twin = naive::edit(&recorded.body, added);
        for step in [1, 97, usize::MAX] {
            let got = edited::edited(recorded.dialect, Some(added), recorded.body.chunks(step));
            assert!(got.missed == 0 && got.body == twin, "{} in steps of {step}", recorded.name);
        }
        let reads = recorded.reads().into_iter().map(|(_, slice)| slice);
        let got = edited::edited(recorded.dialect, Some(added), reads);
        assert!(got.missed == 0 && got.body == twin, "{} as it was read", recorded.name);
    }
    assert!(seen > 30, "only {seen} recordings");
}

/// Streams whose usage, if any, the client would also have received without the proxy.
#[test]
fn streams_without_injected_usage_stay() {
    let mut seen = 0;
    for recorded in Transcript::all() {
        let asked = String::from_utf8_lossy(&recorded.request).contains("_usage");
        if recorded.framing != scan::Framing::Sse || asked || is_forced(&recorded) {
            continue;
        }
        seen += 1;
        // LiteLLM's completions have a usage of zeros in every frame, similar to running ones.
        let zeros = recorded.name == "litellm-1.106.2/completion-stream-plain";
        let all = if zeros { &[END][..] } else { &[END, BOTH][..] };
        for &added in all {
            let filter = UsageFilter::new(Some(added), false);
            let filter = if zeros { filter } else { filter.without_placeholders() };
            let got = edited::filtered(recorded.dialect, filter, recorded.body.chunks(97));
            let same = got.body == recorded.body && got.missed == 0;
            assert!(same, "{} {added:?}: {}", recorded.name, String::from_utf8_lossy(&got.body));
        }
    }
    assert!(seen > 15, "only {seen} recordings");
}

/// vLLM with `--enable-force-include-usage` answers every request with usage and running counts. The running counts
/// show it, so nothing is removed; if the proxy had requested running counts, it could not be detected.
#[test]
fn unrequested_running_counts_show_forced_usage() {
    let forced: Vec<_> = Transcript::all().into_iter().filter(is_forced).collect();
    assert!(forced.len() > 2, "{}", forced.len());
    for recorded in forced {
        for (added, step) in [(None, 97), (Some(END), 97), (Some(END), 1), (Some(END), usize::MAX)] {
            let got = edited::edited(recorded.dialect, added, recorded.body.chunks(step));
            assert!(got.unasked && got.body == recorded.body, "{} {added:?}", recorded.name);
        }
    }
}

fn is_forced(recorded: &Transcript) -> bool {
    let asked = String::from_utf8_lossy(&recorded.request).contains("include_usage\": true");
    let may_ask = matches!(recorded.dialect, scan::Dialect::OpenaiChat | scan::Dialect::OpenaiCompletions);
    let streamed = recorded.framing == scan::Framing::Sse;
    recorded.name.starts_with("vllm-0.32.0/opt-") && may_ask && streamed && !asked
}

/// vLLM moves the finish frame's `system_fingerprint` into the usage event, so it is lost with it. Everything else is
/// unchanged.
#[test]
fn edited_stream_lacks_only_a_fingerprint() {
    let [asked, plain] =
        ["usage", "plain"].map(|kind| Transcript::named(&format!("vllm-0.32.0/chat-stream-{kind}")));
    let edited = edited::edited(asked.dialect, Some(END), [&asked.body[..]]).body;
    let (edited, plain) = (events(&edited), events(&plain.body));
    assert_eq!(edited.len(), plain.len());
    let differ: Vec<_> = edited.iter().zip(&plain).filter(|(edited, plain)| edited != plain).collect();
    let [(edited, plain)] = differ[..] else { panic!("{} events differ", differ.len()) };
    assert!(plain.contains("\"finish_reason\":\"length\""), "{plain}");
    let fingerprint = ",\"system_fingerprint\":\"vllm-0.32.0-c28234d1\"";
    assert_eq!(edited, &plain.replace(fingerprint, ""));
}

/// The events, with the parts that differ between requests made equal.
fn events(body: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    let same = |event: &str| {
        let mut event = event.to_owned();
        for (key, last) in [("\"id\":\"", '"'), ("\"created\":", ',')] {
            if let Some(at) = event.find(key) {
                let from = at + key.len();
                let to = from + event[from..].find(last).expect("an end");
                event.replace_range(from..to, "_");
            }
        }
        event
    };
    text.split("\n\n").map(same).collect()
}
