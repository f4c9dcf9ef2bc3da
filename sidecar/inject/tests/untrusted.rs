//! Untrusted reviews: no panic on any JSON, and a pod is changed as a whole or not at all.

mod recorded;

use std::sync::LazyLock;

use inject::{Config, inject};
use proptest::prelude::*;
use proptest::sample::Index;
use recorded::{config, patched, reviews};
use serde_json::{Value, json};

/// The recorded reviews, read once.
static REVIEWS: LazyLock<Vec<(String, Value)>> = LazyLock::new(reviews);

/// The config, read once.
static CONFIG: LazyLock<Config> = LazyLock::new(config);

/// Keys that the injection reads, so that random values stand where they matter.
const KEYS: [&str; 22] = [
    "metadata",
    "spec",
    "labels",
    "annotations",
    "containers",
    "initContainers",
    "name",
    "image",
    "command",
    "args",
    "ports",
    "containerPort",
    "env",
    "value",
    "volumes",
    "lifecycle",
    "preStop",
    "readinessProbe",
    "httpGet",
    "port",
    "securityContext",
    "sysctls",
];

/// Returns any JSON value.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["vllm", "serve", "--port", "8000", "--port=70000", "é", "http"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS.to_vec()), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Replaces a value somewhere below `tree`.
fn replace(tree: &mut Value, path: &[Index], with: Value) {
    let Some((first, rest)) = path.split_first() else {
        *tree = with;
        return;
    };
    match tree {
        Value::Array(items) if !items.is_empty() => {
            let at = first.index(items.len());
            replace(&mut items[at], rest, with);
        }
        Value::Object(map) if !map.is_empty() => {
            let at = first.index(map.len());
            replace(map.values_mut().nth(at).expect("within"), rest, with);
        }
        _ => *tree = with,
    }
}

proptest! {
    #![proptest_config(chance::cases(512))]

    #[test]
    fn any_json_is_no_panic(pod in any_json()) {
        let _ = inject(&pod, &CONFIG);
    }

    #[test]
    fn damaged_pod_is_changed_whole_or_left(
        at in any::<Index>(),
        path in prop::collection::vec(any::<Index>(), 1..7),
        with in any_json(),
    ) {
        let (_, mut review) = REVIEWS[at.index(REVIEWS.len())].clone();
        replace(&mut review["request"]["object"], &path, with);
        let answer = inject::review::answer(review.to_string().as_bytes(), &CONFIG).expect("it has a uid");
        prop_assert_ne!(answer.outcome, "failed");
        prop_assert_eq!(&answer.review["response"]["allowed"], &json!(true));
        // What the API server parses is what this process parsed, to the last digit of a float.
        let review: Value = serde_json::from_str(&review.to_string()).expect("JSON");
        let whole = inject(&review["request"]["object"], &CONFIG).ok().map(|injected| injected.pod);
        let is_create = review["request"]["operation"] == "CREATE";
        prop_assert_eq!(patched(&review, &answer.review["response"]), whole.filter(|_| is_create));
    }

    #[test]
    fn any_bytes_are_no_review(body in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(inject::review::answer(&body, &CONFIG).is_err());
    }
}

/// Nesting is bounded by the parser, so that no recursion overflows the stack.
#[test]
fn deep_nesting_is_no_review() {
    let body = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert!(inject::review::answer(body.as_bytes(), &CONFIG).is_err());
}

#[test]
fn review_of_another_version_is_refused() {
    let review =
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "1"}});
    assert!(inject::review::answer(review.to_string().as_bytes(), &CONFIG).is_err());
}

/// The names in warnings come from the pod: each is cut.
#[test]
fn warnings_are_bounded() {
    let (_, mut review) =
        reviews().into_iter().find(|(name, _)| name == "container-unknown").expect("recorded");
    let long = "é".repeat(100_000);
    review["request"]["object"]["metadata"]["annotations"]["config.tokenmeter.io/container"] = long.into();
    let answer = inject::review::answer(review.to_string().as_bytes(), &CONFIG).expect("a review");
    let warning = answer.review["response"]["warnings"][0].as_str().expect("a warning").to_owned();
    assert!(warning.contains("é") && warning.len() < 300, "{}", warning.len());
}
