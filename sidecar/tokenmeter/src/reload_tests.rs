//! Watched files that are replaced, damaged, repaired and mutated; keys of a loopback server.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use origin::Origin;
use rules::{TenantFiles, load};
use tenant::{Head, Live, Resolution};

use super::keys::FetchIntervals;
use super::{FileWatch, ReloadResult, ReloadedFile, TenantsWatch, Watch, start_at};
use crate::folder::Folder;
use crate::plan::tenants::Tenancy;

const KEYS: &str = include_str!("../../../proxy/tenant/tests/tokens/keys.json");
const TOKENS: &str = include_str!("../../../proxy/tenant/tests/tokens/tokens.json");

/// Intervals longer than most tests.
const LONG_INTERVALS: FetchIntervals =
    FetchIntervals { regular: Duration::from_secs(300), minimum: Duration::from_secs(30) };

fn token() -> String {
    let rows: Vec<serde_json::Value> = serde_json::from_str(TOKENS).unwrap();
    let row = rows.iter().find(|row| row["name"] == "ES256").unwrap();
    format!("Bearer {}", row["token"].as_str().unwrap())
}

/// Returns the tenant of a request with a token.
fn who(live: &Live) -> String {
    let token = token();
    let field = |name: &str, at| (name == "authorization" && at == 0).then_some(token.as_bytes());
    let peer = IpAddr::from([10, 0, 0, 1]);
    match live.load().head(&Head {
        peer,
        certificate: None,
        path: "/",
        field: &field,
        now_unix_s: 1_800_000_000,
    }) {
        Resolution::Resolved(who) => who.tenant.to_string(),
        Resolution::NeedsBody(_) => unreachable!("no rule here asks the body"),
    }
}

/// A watched tenants file that the test checks.
struct Watched {
    folder: Folder,
    live: Arc<Live>,
    watch: TenantsWatch,
    now: Instant,
}

impl Watched {
    fn begin(name: &str, yaml: &str) -> Self {
        let folder = Folder::new(name);
        fs::write(folder.at("t.yaml"), yaml).unwrap();
        fs::write(folder.at("keys.json"), KEYS).unwrap();
        let files = TenantFiles { rules: Some(folder.at("t.yaml")), hash_key: None };
        let now = load(&files, (&Origin::Default, &Origin::Default)).unwrap();
        let live = Arc::new(Live::default());
        let watch = TenantsWatch::at(LONG_INTERVALS, Tenancy { files, now }, Arc::clone(&live));
        let mut watched = Self { folder, live, watch, now: Instant::now() };
        watched.check();
        watched
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.at(name), text).unwrap();
    }

    /// Checks two seconds later; returns the results without the folder's name.
    fn check(&mut self) -> Vec<String> {
        self.now += Duration::from_secs(2);
        let mut results = Vec::new();
        self.watch.check(self.now, false, &mut results);
        results.into_iter().map(|results| self.told(results)).collect()
    }

    fn told(&self, ReloadResult { kind, outcome }: ReloadResult) -> String {
        let outcome = outcome.map_or_else(|why| format!("refused, {why}"), |what| format!("loaded, {what}"));
        format!("{}: {outcome}", kind.name()).replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn near(tenant: &str) -> String {
    format!("rules:\n  - {{peer: 10.0.0.0/8, tenant: {tenant}}}\n")
}

fn by_token(keys: &str) -> String {
    format!(
        "rules:\n  - jwt: {{keys: \"{keys}\", issuer: \"https://id.example\", audience: tokenmeter, claim: tenant}}\n"
    )
}

#[test]
fn file_is_loaded_only_after_a_change() {
    let mut watched = Watched::begin("reload-changes", &near("one"));
    assert_eq!(who(&watched.live), "one");
    let before = watched.live.load();
    watched.write("t.yaml", &near("one"));
    assert_eq!(watched.check(), [""; 0], "the same again");
    assert!(Arc::ptr_eq(&before, &watched.live.load()));
    watched.write("t.yaml", &near("two"));
    assert_eq!(watched.check(), ["tenants: loaded, 1 rules"]);
    assert_eq!(who(&watched.live), "two");
}

#[test]
fn invalid_file_is_reported_once_and_rules_stay() {
    let mut watched = Watched::begin("reload-broken", &near("one"));
    watched.write("t.yaml", "rules:\n  - peer: nowhere\n    tenant: two\n");
    let told = "tenants: refused, t.yaml:2: `nowhere` is neither a network nor an address; write it as in 10.0.0.0/8, \
                fd00::/8 or 192.0.2.7";
    assert_eq!(watched.check(), [told]);
    assert_eq!(watched.check(), [""; 0]);
    assert_eq!(who(&watched.live), "one");
    fs::remove_file(watched.folder.at("t.yaml")).unwrap();
    let gone = watched.check();
    assert!(gone.len() == 1 && gone[0].contains("cannot be read: No such file"), "{gone:?}");
    assert_eq!(watched.check(), [""; 0]);
    assert_eq!(who(&watched.live), "one");
    watched.write("t.yaml", &near("two"));
    assert_eq!(watched.check(), ["tenants: loaded, 1 rules"]);
    assert_eq!(who(&watched.live), "two");
}

#[test]
fn requested_reload_reports_an_old_error_again() {
    let mut watched = Watched::begin("reload-asked", &near("one"));
    watched.write("t.yaml", "rules: 1\n");
    assert_eq!(watched.check().len(), 1);
    let mut results = Vec::new();
    watched.watch.check(watched.now, true, &mut results);
    assert!(
        matches!(&results[..], [ReloadResult { kind: ReloadedFile::Tenants, outcome: Err(_) }]),
        "{results:?}"
    );
}

/// As a ConfigMap changes: the file is a link through a folder that is swapped by one rename.
#[test]
fn replaced_symlink_is_a_change() {
    let mut watched = Watched::begin("reload-links", &near("one"));
    let folder = watched.folder.path();
    for (name, tenant) in [("..v1", "one"), ("..v2", "two")] {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("t.yaml"), near(tenant)).unwrap();
    }
    symlink("..v1", folder.join("..data")).unwrap();
    fs::remove_file(folder.join("t.yaml")).unwrap();
    symlink("..data/t.yaml", folder.join("t.yaml")).unwrap();
    assert_eq!(watched.check(), [""; 0], "the content is what it was");
    symlink("..v2", watched.folder.at("..data_tmp")).unwrap();
    fs::rename(watched.folder.at("..data_tmp"), watched.folder.at("..data")).unwrap();
    assert_eq!(watched.check(), ["tenants: loaded, 1 rules"]);
    assert_eq!(who(&watched.live), "two");
}

#[test]
fn invalid_key_file_keeps_the_last_keys() {
    let mut watched = Watched::begin("reload-keys", &by_token("keys.json"));
    assert_eq!(who(&watched.live), "acme");
    watched.write("keys.json", "{\"keys\":[]}");
    assert_eq!(watched.check(), ["keys: refused, t.yaml:2: the keys of keys.json: the list `keys` is empty"]);
    assert_eq!(who(&watched.live), "acme");
    let other = KEYS.replace("\"kid\": \"p256\"", "\"kid\": \"new\"");
    watched.write("keys.json", &other);
    assert_eq!(watched.check(), ["keys: loaded, 4 keys of keys.json"]);
    assert_eq!(who(&watched.live), "default", "results of the old keys are dropped");
    watched.write("keys.json", KEYS);
    watched.write("t.yaml", &format!("default: none\n{}", by_token("keys.json")));
    assert_eq!(watched.check(), ["tenants: loaded, 1 rules", "keys: loaded, 4 keys of keys.json"]);
    assert_eq!(who(&watched.live), "acme");
    watched.write("t.yaml", &near("one"));
    watched.check();
    watched.write("t.yaml", &by_token("keys.json"));
    watched.check();
    assert_eq!(who(&watched.live), "acme", "new rules come with their keys");
}

/// Each of five hundred mutated files is loaded or rejected, and the rules are those of the last loaded one.
#[test]
fn mutated_files_load_or_change_nothing() {
    const EXAMPLE: &str = include_str!("../../../proxy/tenant/tenants.md");
    let example = EXAMPLE.split("```yaml\n").nth(2).unwrap().split("```").next().unwrap();
    // Without the rules that need a key file or a server.
    let plain: String = example.split("  # 3.").nth(1).map(|rest| format!("  # 3.{rest}")).unwrap();
    let base = format!("trusted_peers: [10.0.0.0/8]\nhash_principals: false\nrules:\n{plain}");
    let mut watched = Watched::begin("reload-mutated", &base);
    // SplitMix64 with a fixed seed, so that the cases never change.
    let mut state = 20_261_121_u64;
    let mut below = move |bound: usize| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    };
    let mut outcomes = BTreeMap::new();
    let mut in_force = watched.live.load();
    for case in 0..500 {
        let mut bytes = base.clone().into_bytes();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b":-#[{}]\"'\n \t&*!|>%@`,?\xff"[below(23)]),
                2 => bytes[at] = b' ' + below(95) as u8,
                _ => bytes.truncate(at.max(1)),
            }
        }
        fs::write(watched.folder.at("t.yaml"), &bytes).unwrap();
        let told = watched.check();
        let now = watched.live.load();
        let loaded = told.iter().any(|told| told.starts_with("tenants: loaded"));
        assert_eq!(Arc::ptr_eq(&in_force, &now), !loaded, "case {case}: {told:?}");
        assert!(told.len() <= 1, "case {case}: {told:?}");
        if let Some(refused) = told.iter().find(|_| !loaded) {
            assert!(refused.contains("t.yaml"), "case {case}: {refused}");
        }
        *outcomes
            .entry(if loaded {
                "loaded"
            } else if told.is_empty() {
                "same"
            } else {
                "refused"
            })
            .or_insert(0) += 1;
        in_force = now;
    }
    assert!(outcomes["loaded"] > 50 && outcomes["refused"] > 50, "{outcomes:?}");
}

/// Starts a loopback server of keys that counts its requests.
fn server(answer: impl Fn(usize) -> String + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys.json", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            assert!(head.starts_with(b"GET /keys.json HTTP/1.1\r\n"));
            let body = answer(count.fetch_add(1, Ordering::SeqCst));
            let _ = connection.write_all(body.as_bytes());
        }
    });
    (url, asked)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn unknown_key_causes_a_new_fetch() {
    let without = KEYS.replace("\"kid\": \"p256\"", "\"kid\": \"old\"");
    let (url, asked) = server(move |time| ok(if time == 0 { &without } else { KEYS }));
    let mut watched = Watched::begin("reload-url", &by_token(&url));
    let asked = move || asked.load(Ordering::SeqCst);
    assert_eq!(asked(), 1);
    assert_eq!(who(&watched.live), "default", "the issuer has a newer key");
    for _ in 0..14 {
        assert_eq!(watched.check(), [""; 0]);
    }
    assert_eq!(asked(), 1, "not before the minimum interval");
    let told = watched.check();
    assert_eq!((told.len(), asked()), (1, 2), "{told:?}");
    assert_eq!(who(&watched.live), "acme");
    for _ in 0..149 {
        watched.check();
    }
    assert_eq!(asked(), 2, "not before the regular interval");
    watched.check();
    assert_eq!(asked(), 3);
}

#[test]
fn failed_fetch_keeps_the_last_keys() {
    let huge = format!("{{\"keys\":[], \"x\":\"{}\"}}", "a".repeat(600 * 1024));
    let answers = move |time| match time {
        0 | 5 => ok(KEYS),
        1 => "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        2 => ok("<html>log in</html>"),
        3 => ok(&huge),
        _ => String::new(),
    };
    let (url, asked) = server(answers);
    let mut watched = Watched::begin("reload-url-fails", &by_token(&url));
    for (time, why) in
        [(1, "503"), (2, "not JSON at line 1 column 1"), (3, "larger than 524288 bytes"), (4, "")]
    {
        watched.now += Duration::from_secs(300);
        let told = watched.check();
        assert_eq!(asked.load(Ordering::SeqCst), time + 1);
        assert!(
            told.len() == 1 && told[0].starts_with("keys: refused, t.yaml:2: the keys of http://"),
            "{told:?}"
        );
        assert!(told[0].contains(why), "{told:?}");
        assert_eq!(who(&watched.live), "acme");
    }
    watched.now += Duration::from_secs(28);
    let told = watched.check();
    assert!(told.len() == 1 && told[0].starts_with("keys: loaded"), "after the minimum interval: {told:?}");
}

#[test]
fn file_watch_loads_any_text() {
    let folder = Folder::new("reload-any");
    let path = folder.at("prices.yaml");
    fs::write(&path, "good 1").unwrap();
    let taken = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&taken);
    let take = move |text: &str| match text.starts_with("good") {
        true => {
            *into.lock().unwrap() = text.to_owned();
            Ok(())
        }
        false => Err("prices.yaml:1: this is not good".to_owned()),
    };
    let mut watch = FileWatch::new(ReloadedFile::Prices, &path, 8, take);
    let mut look = || {
        let mut results = Vec::new();
        watch.check(Instant::now(), false, &mut results);
        results.into_iter().map(|results| results.outcome.is_ok()).collect::<Vec<_>>()
    };
    let taken = || taken.lock().unwrap().clone();
    assert_eq!((look(), taken()), (vec![true], "good 1".to_owned()));
    for (content, told) in [
        (&b"good 1"[..], vec![]),
        (b"bad", vec![false]),
        (b"bad", vec![]),
        (b"good 1", vec![true]),
        (b"\xff", vec![false]),
        (b"good and too long", vec![false]),
    ] {
        fs::write(&path, content).unwrap();
        assert_eq!((look(), taken()), (told, "good 1".to_owned()), "{content:?}");
    }
    fs::write(&path, "good 2").unwrap();
    assert_eq!((look(), taken()), (vec![true], "good 2".to_owned()));
}

#[test]
fn requested_check_runs_at_once_with_hook() {
    let folder = Folder::new("reload-thread");
    let path = folder.at("prices.yaml");
    fs::write(&path, "a").unwrap();
    let take = |text: &str| match text {
        "bad" => Err("bad".to_owned()),
        "odd" => panic!("a test's panic"),
        _ => Ok(()),
    };
    let watch = FileWatch::new(ReloadedFile::Prices, &path, 8, take);
    let (tell, told) = channel();
    let hook = Box::new(move |kind: ReloadedFile, loaded| tell.send((kind, loaded)).unwrap());
    let reload = start_at(Duration::from_secs(3600), vec![Box::new(watch)], hook).unwrap();
    reload.wait_first(Duration::from_secs(60));
    assert_eq!(told.try_recv(), Ok((ReloadedFile::Prices, true)), "before the first request");
    fs::write(&path, "bad").unwrap();
    reload.now();
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok((ReloadedFile::Prices, false)));
    fs::write(&path, "b").unwrap();
    reload.now();
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok((ReloadedFile::Prices, true)));
    for text in ["odd", "c"] {
        let before = reload.0.lock().rounds;
        fs::write(&path, text).unwrap();
        reload.now();
        let waiting = |state: &mut super::State| state.rounds == before;
        drop(reload.0.changed.wait_timeout_while(reload.0.lock(), Duration::from_secs(60), waiting));
    }
    assert_eq!(
        told.recv_timeout(Duration::from_secs(60)),
        Ok((ReloadedFile::Prices, true)),
        "a panic does not end the thread"
    );
    drop(reload);
    let end = loop {
        if let Err(end) = told.recv_timeout(Duration::from_secs(60)) {
            break end;
        }
    };
    assert_eq!(end, RecvTimeoutError::Disconnected, "the thread and its hook end");
}

#[test]
fn start_without_sources_does_not_wait() {
    let reload = start_at(Duration::from_secs(3600), Vec::new(), Box::new(|_, _| ())).unwrap();
    let begun = Instant::now();
    reload.wait_first(Duration::from_secs(600));
    assert!(begun.elapsed() < Duration::from_secs(300));
}
