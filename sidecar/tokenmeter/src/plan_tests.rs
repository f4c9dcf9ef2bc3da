//! The plan of every setting, and the text of every error.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use connect::Address;
use origin::file;
use relay::{ServerKind, UsagePolicy};
use servers::Scrape;

use super::Plan;
use crate::plan::machine::Machine;
use crate::settings::{RawSettings, SETTINGS};

/// A machine with six cores, one host name and loopback addresses only.
struct Fake;

impl Machine for Fake {
    fn cores(&self) -> usize {
        6
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        match host {
            "localhost" => vec!["127.0.0.1".parse().unwrap()],
            _ => Vec::new(),
        }
    }

    fn owns(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }

    fn host(&self) -> String {
        "node-1".to_owned()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn variables(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Parses `key=value` flags, separated by spaces.
pub(super) fn flags(written: &str) -> RawSettings {
    let flags = written.split_whitespace().map(|flag| {
        let (key, value) = flag.split_once('=').unwrap();
        let row = SETTINGS.iter().find(|row| row.key == key).unwrap();
        (row.key, value.to_owned())
    });
    RawSettings::merge(&flags.collect::<BTreeMap<_, _>>(), &|_| None, None)
}

pub(super) fn yaml(text: &str) -> RawSettings {
    RawSettings::merge(&BTreeMap::new(), &|_| None, Some(file::parse("t.yaml", text).unwrap()))
}

pub(super) fn plan(written: &RawSettings) -> Plan {
    Plan::make(written, &Fake).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(super) fn errors(written: &RawSettings) -> Vec<String> {
    let errors = Plan::make(written, &Fake).expect_err("these settings are invalid");
    errors.0.iter().map(ToString::to_string).collect()
}

/// Returns the addresses of an upstream's listeners; those with TLS are marked.
pub(super) fn listeners(upstream: &relay::Upstream) -> String {
    let shown = upstream.listen.iter().map(|listen| match &listen.tls {
        None => listen.address.to_string(),
        Some(_) => format!("{} tls", listen.address),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn one_upstream_is_enough() {
    let plan = plan(&flags("upstream=http://gpu:8000"));
    let [upstream] = plan.relay.upstreams.as_slice() else { panic!("one upstream") };
    assert_eq!(&*upstream.name, "gpu:8000");
    assert_eq!((upstream.target.address(), &*upstream.prefix), (&Address::host("gpu", 8000), ""));
    assert_eq!(&*upstream.provider, "openai", "until it is detected");
    assert_eq!((plan.servers.targets[0].kind, plan.servers.targets[0].scrape), (None, Scrape::Auto));
    assert_eq!(plan.servers.every, Duration::from_secs(15));
    assert_eq!(listeners(upstream), "127.0.0.1:9800");
    assert_eq!(plan.admin, "127.0.0.1:9464".parse().unwrap());
    assert_eq!(plan.relay.workers, 6);
    assert_eq!(plan.relay.stall, Duration::from_secs(1));
    assert_eq!(plan.relay.connect_timeout, Duration::from_secs(5));
    assert_eq!(plan.relay.head_timeout, Duration::from_secs(10));
    assert_eq!(plan.relay.pool_idle, Duration::from_secs(4));
    assert_eq!(plan.relay.pool_size, 256);
    assert_eq!(plan.relay.drain_delay, Duration::from_secs(5));
    assert_eq!(plan.relay.drain_grace, Duration::from_secs(25));
    assert!(!plan.relay.half_close && !plan.relay.transparent);
    assert_eq!(plan.relay.connections, 4096);
    assert_eq!((plan.max_models, plan.outbox_records), (50, 4096));
    assert!(plan.admin_hosts.is_empty() && !plan.log.access && plan.drain_token.is_none());
    assert!(plan.admin_token.is_none());
    assert!(plan.warnings.is_empty());
}

#[test]
fn every_setting_reaches_its_part() {
    let plan = plan(&flags(
        "upstream=http://[::1]:8000/base/ kind=llama_cpp engine_metrics=on engine_metrics_interval_ms=1000 listen=localhost:1 admin=[::]:2 admin_hosts=a.b,c admin_token_file=a \
         workers=3 connections=4 pool_size=5 pool_idle_ms=6 connect_timeout_ms=7 head_timeout_ms=8 stall_ms=9 \
         half_close=true transparent=true drain_delay_ms=10 drain_grace_ms=11 drain_token_file=t max_models=12 outbox_records=13 access_log=true \
         log_level=debug log_format=json",
    ));
    let upstream = &plan.relay.upstreams[0];
    assert_eq!((upstream.target.address(), &*upstream.prefix), (&Address::host("::1", 8000), "/base"));
    assert_eq!(&*upstream.provider, "llama_cpp");
    let [server] = plan.servers.targets.as_slice() else { panic!("one upstream") };
    assert_eq!(
        (&*server.name, server.fetcher.target.address(), &*server.fetcher.prefix),
        ("[::1]:8000", &Address::host("::1", 8000), "/base")
    );
    assert_eq!((server.kind, server.scrape), (Some(ServerKind::LlamaCpp), Scrape::On));
    assert_eq!(plan.servers.every, Duration::from_secs(1));
    assert_eq!(listeners(upstream), "127.0.0.1:1");
    assert_eq!(plan.admin, "[::]:2".parse().unwrap());
    assert_eq!(plan.admin_hosts, ["a.b", "c"]);
    assert_eq!((plan.relay.workers, plan.relay.connections, plan.relay.pool_size), (3, 4, 5));
    let times = [
        plan.relay.pool_idle,
        plan.relay.connect_timeout,
        plan.relay.head_timeout,
        plan.relay.stall,
        plan.relay.drain_delay,
        plan.relay.drain_grace,
    ];
    assert_eq!(times, [6, 7, 8, 9, 10, 11].map(Duration::from_millis));
    assert!(plan.relay.half_close && plan.relay.transparent && plan.log.access);
    assert_eq!(plan.admin_token, Some(crate::token_file::TokenFile::at("a")));
    assert_eq!(plan.drain_token, Some(crate::token_file::TokenFile::at("t")));
    assert_eq!((plan.max_models, plan.outbox_records), (12, 13));
    assert_eq!(plan.log.level, crate::log::Level::named("debug"));
    assert_eq!(plan.log.format, crate::log::Format::Json);
}

#[test]
fn host_of_named_tls_is_sent() {
    for (url, sent) in [
        ("https://llm.example", Some("llm.example")),
        ("https://llm.example:8443/x", Some("llm.example:8443")),
        ("https://10.1.2.3", None),
        ("https://[::1]:8443", None),
        ("https://localhost:8443", None),
        ("http://llm.example", None),
    ] {
        let plan = plan(&flags(&format!("upstream={url}")));
        assert_eq!(plan.relay.upstreams[0].authority.as_deref(), sent, "{url}");
    }
}

#[test]
fn host_of_a_provider_decides_kind_and_provider() {
    let facts = |written| {
        let plan = plan(&flags(written));
        let upstream = &plan.relay.upstreams[0];
        assert_eq!(plan.servers.targets[0].kind, upstream.kind);
        // Only a provider's own host replaces the client's `Host`.
        let host = written.split_whitespace().next().unwrap().strip_prefix("upstream=http://").unwrap();
        assert_eq!(upstream.authority.as_deref(), host.contains(".com").then_some(host), "{written}");
        (upstream.kind, upstream.provider.to_string(), upstream.usage)
    };
    let (inject, continuous) = (UsagePolicy::Inject, UsagePolicy::Continuous);
    for (written, kind, provider, usage) in [
        ("upstream=http://api.openai.com", Some(ServerKind::Openai), "openai", inject),
        ("upstream=http://api.openai.com usage=continuous", Some(ServerKind::Openai), "openai", inject),
        (
            "upstream=http://api.openai.com usage=observe",
            Some(ServerKind::Openai),
            "openai",
            UsagePolicy::Observe,
        ),
        ("upstream=http://api.openai.com:8443", Some(ServerKind::Openai), "openai", inject),
        ("upstream=http://generativelanguage.googleapis.com", Some(ServerKind::Gemini), "gcp.gemini", inject),
        ("upstream=http://me.openai.azure.com", Some(ServerKind::AzureOpenai), "azure.ai.openai", inject),
        // What is configured decides the kind; the host still names the provider.
        ("upstream=http://api.groq.com kind=vllm", Some(ServerKind::Vllm), "groq", inject),
        ("upstream=http://gpu kind=gemini", Some(ServerKind::Gemini), "gcp.gemini", inject),
        ("upstream=http://gpu kind=openai usage=continuous", Some(ServerKind::Openai), "openai", continuous),
        ("upstream=http://gpu", None, "openai", inject),
    ] {
        assert_eq!(facts(written), (kind, provider.to_owned(), usage), "{written}");
    }
}

#[test]
fn each_listed_upstream_has_a_listener() {
    let plan = plan(&yaml(
        "kind: vllm\nengine_metrics: off\nupstreams:\n  - {name: a, url: \"http://a:1\"}\n  - {url: \"http://b:1\", \
         kind: tgi, engine_metrics: on, listen: \"127.0.0.1:9801\"}\n",
    ));
    let servers = plan.servers.targets.iter().map(|target| (target.kind, target.scrape));
    let expected = [(Some(ServerKind::Vllm), Scrape::Off), (Some(ServerKind::Tgi), Scrape::On)];
    assert_eq!(servers.collect::<Vec<_>>(), expected);
    let shown: Vec<_> = plan
        .relay
        .upstreams
        .iter()
        .map(|upstream| format!("{} {} {}", upstream.name, listeners(upstream), upstream.provider))
        .collect();
    assert_eq!(shown, ["a 127.0.0.1:9800 vllm", "b:1 127.0.0.1:9801 tgi"]);
}

#[test]
fn errors_have_place_problem_and_remedy() {
    for (written, expected) in [
        (
            "",
            "--upstream: the inference server is not named; write --upstream http://HOST:PORT (or \
             TOKENMETER_UPSTREAM, or `upstreams` in the file)",
        ),
        (
            "upstream=gpu:8000",
            "--upstream: not a URL; write http://HOST:PORT, as in http://127.0.0.1:8000, or https://HOST",
        ),
        (
            "upstream=unix:///run/vllm.sock",
            "--upstream: `unix:` is followed by two slashes, as if a Unix socket had a host; write unix:PATH, \
             as in unix:/run/vllm.sock",
        ),
        (
            "upstream=unix:/run/vllm.sock transparent=true",
            "--transparent: /run/vllm.sock is a Unix socket, which no redirected connection addresses; name its TCP \
             port, or remove one of the two",
        ),
        (
            "upstream=http://user:secret@gpu:8000",
            "--upstream: the URL holds credentials; remove them: the clients' own Authorization fields are \
             forwarded",
        ),
        (
            "upstream=http://gpu listen=9800",
            "--listen: `9800` is not ADDRESS:PORT; write it as in 127.0.0.1:9800, or 0.0.0.0:9800 for every \
             interface",
        ),
        (
            "upstream=http://gpu admin=0.0.0.0:9800",
            "--admin: 127.0.0.1:9800 and 0.0.0.0:9800 use the same port; give each listener a port of its own",
        ),
        (
            "upstream=http://gpu listen=127.0.0.1:9464",
            "--listen: 127.0.0.1:9464 and 127.0.0.1:9464 use the same port; give each listener a port of its \
             own",
        ),
        (
            "upstream=http://localhost:9800",
            "--upstream: http://localhost:9800 is tokenmeter's own listener 127.0.0.1:9800, so a request would \
             loop forever; name the inference server's own address, or listen on another port",
        ),
        (
            "upstream=http://0.0.0.0:9464",
            "--upstream: http://0.0.0.0:9464 is tokenmeter's own listener 127.0.0.1:9464, so a request would \
             loop forever; name the inference server's own address, or listen on another port",
        ),
        (
            "upstream=http://gpu kind=llama.cpp",
            "--kind: `llama.cpp` is not one of auto, vllm, tgi, llama_cpp, sglang, ollama, tensorrt_llm, triton, \
             lmdeploy, mistral_rs, dynamo, openai, anthropic, gemini, azure_openai, openrouter; did you mean `llama_cpp`?",
        ),
        (
            "upstream=http://gpu engine_metrics=maybe",
            "--engine-metrics: `maybe` is not one of auto, on, off; write one of these",
        ),
        (
            "upstream=http://gpu engine_metrics_interval_ms=999",
            "--engine-metrics-interval-ms: `999` is not a number of milliseconds; write a whole number from 1000 \
             to 3600000",
        ),
        (
            "upstream=http://gpu log_format=xml",
            "--log-format: `xml` is not one of auto, text, json; write one of these",
        ),
        (
            "upstream=http://gpu workers=0",
            "--workers: `0` is not a number of threads; write a whole number from 1 to 1024",
        ),
        (
            "upstream=http://gpu stall_ms=1.5",
            "--stall-ms: `1.5` is not a number of milliseconds; write a whole number from 1 to 3600000",
        ),
        (
            "upstream=http://gpu half_close=maybe",
            "--half-close: `maybe` is neither true nor false; write true or false",
        ),
        (
            "upstream=http://gpu admin_hosts=a,http://b",
            "--admin-hosts: `http://b` is not a host name; write names without a scheme or a port",
        ),
    ] {
        assert_eq!(errors(&flags(written)), [expected], "{written}");
    }
}

#[test]
fn redirected_port_names_one_upstream() {
    let text = "transparent: true\nupstreams:\n  - {name: a, url: \"http://10.0.0.1:8000\"}\n  \
                - {name: b, url: \"http://10.0.0.2:PORT\", listen: \"127.0.0.1:9801\"}\n";
    assert!(plan(&yaml(&text.replace("PORT", "8001"))).relay.transparent);
    let same = text.replace("PORT", "8000");
    assert_eq!(
        errors(&yaml(&same)),
        [
            "t.yaml:1: a and b have the same port 8000; give each upstream of redirected connections a port of its own"
        ]
    );
    assert!(!plan(&yaml(&same.replace("true", "false"))).relay.transparent);
}

#[test]
fn errors_in_a_list_name_their_line() {
    for (text, expected) in [
        (
            "upstreams: []\n",
            "t.yaml:1: `upstreams` is empty; write one `- url: http://HOST:PORT` for each upstream under it",
        ),
        (
            "upstreams:\n  - name: a\n",
            "t.yaml:2: an upstream has no `url`; add `url: http://HOST:PORT` to it",
        ),
        (
            "upstreams:\n  - url: http://a:1\n  - url: http://b:1\n",
            "t.yaml:3: an upstream has no `listen`; add `listen: ADDRESS:PORT` to it; only the first has a default",
        ),
        (
            "upstreams:\n  - url: http://a:1\n  - url: http://a:1\n    listen: 127.0.0.1:1\n",
            "t.yaml:3: two upstreams are named `a:1`; give each a `name` of its own",
        ),
        (
            "upstreams:\n  - url: http://a:1\n    name: \"\"\n",
            "t.yaml:3: the name is empty, too long or not printable; write 1 to 128 bytes of printable text",
        ),
        (
            "upstreams:\n  - url: http://a:1\n  - url: http://b:1\n    listen: 127.0.0.1:9800\n",
            "t.yaml:4: 127.0.0.1:9800 and 127.0.0.1:9800 use the same port; give each listener a port of its own",
        ),
        (
            "upstreams:\n  - url: http://a:1\n  - url: http://localhost:9800\n    listen: 127.0.0.1:1\n",
            "t.yaml:3: http://localhost:9800 is tokenmeter's own listener 127.0.0.1:9800, so a request would loop \
             forever; name the inference server's own address, or listen on another port",
        ),
        (
            "upstream: http://a:1\nupstreams:\n  - url: http://b:1\n",
            "t.yaml:1: `upstream` and `upstreams` (t.yaml:2) are both set; keep one of them",
        ),
    ] {
        assert_eq!(errors(&yaml(text)), [expected], "{text}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let file =
        "listen: nowhere\nworkerz: 3\nstall_ms: soon\nupstreams:\n  - url: ftp://a\n    kind: vlm\n  - {}\n";
    let env = |name: &str| (name == "TOKENMETER_MAX_MODELS").then(|| "many".to_owned());
    let flags = BTreeMap::from([("admin", "9464".to_owned())]);
    let written = RawSettings::merge(&flags, &env, Some(file::parse("t.yaml", file).unwrap()));
    let mut places: Vec<_> =
        errors(&written).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    places.sort();
    let expected = [
        "--admin",
        "TOKENMETER_MAX_MODELS",
        "t.yaml:1",
        "t.yaml:2",
        "t.yaml:3",
        "t.yaml:5",
        "t.yaml:6",
        "t.yaml:7",
        "t.yaml:7",
    ];
    assert_eq!(places, expected);
    let all = Plan::make(&written, &Fake).unwrap_err().to_string();
    assert!(all.starts_with("9 errors in the settings:\n  "), "{all}");
    assert_eq!(all.lines().count(), 10, "{all}");
}

#[test]
fn error_repeats_no_secret() {
    let errors = errors(&flags("upstream=http://me:hunter2@gpu:8000/?key=hunter2")).join("\n");
    assert!(!errors.contains("hunter2"), "{errors}");
}

#[test]
fn probable_misconfiguration_is_a_warning() {
    let warnings = |written: &RawSettings| -> Vec<String> {
        plan(written).warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings(&flags("upstream=http://gpu pool_idle_ms=5000")),
        [
            "--pool-idle-ms: uvicorn, which vLLM and SGLang run on, closes idle connections after 5000 ms, so a \
          request may use a connection that is just closing; write less than 5000"
        ]
    );
    assert_eq!(
        warnings(&flags("upstream=http://gpu/v1")),
        [
            "--upstream: the URL ends in /v1, so a client's /v1/… reaches the upstream as /v1/v1/…; remove /v1 unless that \
          is intended"
        ]
    );
    let file = || {
        Some(
            file::parse("t.yaml", "upstreams:\n  - {url: \"http://a:1\", listen: \"127.0.0.1:1\"}\n")
                .unwrap(),
        )
    };
    let flag = |key, text: &str| BTreeMap::from([(key, text.to_owned())]);
    assert_eq!(
        warnings(&RawSettings::merge(&flag("listen", "127.0.0.1:2"), &|_| None, file())),
        [
            "--listen: has no effect: the first upstream has a listen address at t.yaml:2; remove one of the two"
        ]
    );
    assert_eq!(
        warnings(&RawSettings::merge(&flag("upstream", "http://b:1"), &|_| None, file())),
        ["t.yaml:1: the upstreams listed here are not used: --upstream applies; remove one of the two"]
    );
    let own = file::parse("t.yaml", "upstreams:\n  - {url: \"http://a:1\", usage: inject}\n").unwrap();
    let env = |name: &str| (name == "TOKENMETER_USAGE").then(|| "observe".to_owned());
    assert_eq!(
        warnings(&RawSettings::merge(&BTreeMap::new(), &env, Some(own))),
        [
            "TOKENMETER_USAGE: has no effect on the upstream whose entry has `usage: inject` at t.yaml:2; change \
          the entry, or remove the key there"
        ]
    );
}

#[test]
fn printed_settings_parse_to_the_same_plan() {
    let written = yaml(
        "kind: vllm\nstall_ms: 7\nadmin: \"[::1]:9464\"\nadmin_hosts: [a, b]\nupstreams:\n  - {name: \"x \\\"y\", \
         url: \"http://a:1/p\"}\n  - {name: \"null\", url: \"http://[::1]:1\", listen: \"127.0.0.1:9801\"}\n  \
         - {name: 00417, url: \"http://b:1\", listen: \"127.0.0.1:9802\"}\n",
    );
    let first = plan(&written);
    let shown = first.effective.show(false);
    let again = plan(&yaml(&shown));
    assert_eq!(again.effective.show(false), shown);
    assert_eq!(format!("{:?}", again.relay), format!("{:?}", first.relay));
    assert_eq!((again.admin, again.admin_hosts), (first.admin, first.admin_hosts));
}

#[test]
fn origins_are_printed_beside_the_values() {
    let env = |name: &str| (name == "TOKENMETER_LISTEN").then(|| "127.0.0.1:1".to_owned());
    let flags = BTreeMap::from([("upstream", "http://gpu:8000".to_owned())]);
    let written =
        RawSettings::merge(&flags, &env, Some(file::parse("t.yaml", "workers: 007\nstall_ms: 5\n").unwrap()));
    let shown = plan(&written).effective.show(true);
    for line in [
        "upstreams:",
        "  - name: gpu:8000              # default",
        "    url: http://gpu:8000        # --upstream",
        "    kind: auto                  # default",
        "    engine_metrics: auto        # default",
        "engine_metrics_interval_ms: 15000 # default",
        "    listen: 127.0.0.1:1         # TOKENMETER_LISTEN",
        "admin: 127.0.0.1:9464           # default",
        "workers: 7                      # t.yaml:1",
        "stall_ms: 5                     # t.yaml:2",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.lines().any(|shown| squeezed(shown) == squeezed(line)), "{line} in\n{shown}");
    }
    let columns: Vec<_> = shown.lines().filter_map(|line| line.find("# ")).collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "one column:\n{shown}");
}

#[test]
fn role_of_an_upstream_precedes_the_general_one() {
    let text = "role: auto\nupstreams:\n  - {url: \"http://a:1\", role: prefill}\n  - {url: \"http://b:1\", listen: \"127.0.0.1:1\"}\n";
    let plan = plan(&yaml(text));
    let roles: Vec<_> = plan.relay.upstreams.iter().map(|upstream| upstream.role.name()).collect();
    assert_eq!(roles, ["prefill", "auto"]);
}

#[test]
fn enforced_budget_makes_usage_continuous() {
    let budget = |enforce: bool| {
        format!(
            "prices: {PRICES}\nledger: l.db\nbudgets:\n  - {{name: b, budget_duration: day, max_budget: 1, enforce: {enforce}}}\n"
        )
    };
    let upstreams = "upstreams:\n  - {url: \"http://a:1\"}\n  - {url: \"http://b:1\", listen: \"127.0.0.1:2\", usage: inject}\n";
    let of = |text: &str| {
        let plan = plan(&yaml(text));
        let policies: Vec<&str> = plan.relay.upstreams.iter().map(|upstream| upstream.usage.name()).collect();
        let about: Vec<String> =
            plan.warnings.iter().map(ToString::to_string).filter(|w| w.contains("usage")).collect();
        (policies, plan.notes.len(), about, plan.effective.show(true))
    };
    let (policies, notes, about, shown) = of(&format!("{}{upstreams}", budget(true)));
    assert_eq!((policies, notes), (vec!["continuous", "inject"], 1));
    assert_eq!(
        about,
        ["t.yaml:7: a budget is enforced, and with `usage: inject` the tokens of a client that disconnects \
             during a stream are counted only in part; write continuous, or remove the key"]
    );
    assert!(shown.contains("# a budget is enforced, so upstreams without"), "{shown}");
    let (policies, notes, about, _) = of(&format!("{}{upstreams}", budget(false)));
    assert_eq!((policies, notes, about.len()), (vec!["inject", "inject"], 0, 0));
    let (policies, notes, about, _) = of(&format!("{}{upstreams}usage: observe\n", budget(true)));
    assert_eq!((policies, notes, about.len()), (vec!["observe", "inject"], 0, 2), "a written policy stays");
}

#[test]
fn enforced_budget_refuses_detached_work() {
    let text = |enforce: bool, more: &str| {
        format!(
            "upstream: \"http://a:1\"\nprices: {PRICES}\nledger: l.db\nbudgets:\n  - {{name: b, budget_duration: day, \
             max_budget: 1, enforce: {enforce}}}\n{more}"
        )
    };
    for (enforce, more, refuses) in [
        (true, "", true),
        (false, "", false),
        (true, "detached_work: allow\n", false),
        (false, "detached_work: refuse\n", true),
        (false, "detached_work: auto\n", false),
    ] {
        assert_eq!(plan(&yaml(&text(enforce, more))).relay.refuse_detached, refuses, "{enforce} {more}");
    }
}

const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prices.yaml");
