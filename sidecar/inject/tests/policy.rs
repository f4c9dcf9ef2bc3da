//! The policies of the chart, evaluated by the API server's own packages on the recorded reviews: by port takeover they
//! make the same pods as the webhook, and they name the pods that are left.

mod images;
mod random;
mod recorded;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use inject::{KINDS, NAMES, ROLES, USAGES, inject};
use recorded::{config, kubernetes, patched, reviews};
use serde_json::{Value, json};

/// Modes that need the webhook: a policy leaves these pods.
const WEBHOOK_ONLY: [&str; 3] = ["named-port-mode", "redirect-mode", "redirect-user-of-its-own"];

/// Returns the path of the evaluator, which `tests/kubernetes/policy/install` builds.
fn evaluator() -> PathBuf {
    let root = std::env::var_os("TOKENMETER_POLICY").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/tokenmeter/policy"),
        PathBuf::from,
    );
    let path = root.join("policy");
    assert!(path.exists(), "{} is missing; install it with: tests/kubernetes/policy/install", path.display());
    path
}

/// Evaluates the policies on reviews, in the order given.
fn evaluate(reviews: &[Value]) -> Vec<Value> {
    let mut child = Command::new(evaluator())
        .arg(kubernetes("policy/policy.yaml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the evaluator starts");
    let lines: String = reviews.iter().map(|review| format!("{review}\n")).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the evaluator ends");
    assert!(output.status.success(), "the evaluator rejects the policies");
    writer.join().expect("the thread").expect("the evaluator reads all");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let results: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(results.len(), reviews.len());
    results
}

fn with_object(review: &Value, object: &Value) -> Value {
    let mut review = review.clone();
    review["request"]["object"] = object.clone();
    review
}

#[test]
#[ignore = "needs tests/kubernetes/policy/install"]
fn policy_and_webhook_make_the_same_pods() {
    // Selectors of the binding spare the policy from updates.
    let reviews = reviews().into_iter().filter(|(_, review)| review["request"]["operation"] == "CREATE");
    assert!(compare(&reviews.collect::<Vec<_>>()) > 20);
}

#[test]
#[ignore = "needs tests/kubernetes/policy/install"]
fn policy_and_webhook_agree_on_images() {
    let servers = images::IMAGES.iter().filter(|(_, _, server)| !server.is_empty()).count();
    assert_eq!(compare(&images::reviews()), servers);
}

#[test]
#[ignore = "needs tests/kubernetes/policy/install"]
fn policy_and_webhook_agree_on_random_pods() {
    let count = u64::from(chance::cases(1500).cases);
    let seed = if chance::is_long() { std::process::id().into() } else { 1 };
    let pods = (0..count).map(|case| (format!("seed {seed} case {case}"), random::review(seed, case)));
    let injected = compare(&pods.collect::<Vec<_>>());
    assert!(injected > 100, "only {injected} random pods are metered");
}

/// Compares the pods of policy and webhook; returns how many are injected.
fn compare(reviews: &[(String, Value)]) -> usize {
    let config = config();
    let mut injected = 0;
    let inputs: Vec<Value> = reviews.iter().map(|(_, review)| review.clone()).collect();
    // The API server's types add empty fields; a pod that the webhook patched is read by the same types.
    let mut patch = |(name, review): &(String, Value)| {
        let answer = inject::review::answer(review.to_string().as_bytes(), &config).expect(name);
        let pod =
            patched(review, &answer.review["response"]).filter(|_| !WEBHOOK_ONLY.contains(&name.as_str()));
        injected += usize::from(pod.is_some());
        let pod = pod.unwrap_or_else(|| review["request"]["object"].clone());
        opted_out(&with_object(review, &pod))
    };
    let outputs: Vec<Value> = reviews.iter().map(&mut patch).collect();
    let mut wrong = Vec::new();
    for (((name, review), policy), webhook) in reviews.iter().zip(evaluate(&inputs)).zip(evaluate(&outputs)) {
        let mut webhook = webhook["object"].clone();
        webhook["metadata"]["labels"] = policy_labels(review, &webhook, name);
        if policy.get("error").is_some() || policy["object"] != webhook {
            wrong.push(format!(
                "{name}:\ninput   {}\npolicy  {policy}\nwebhook {webhook}",
                review["request"]["object"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ, such as\n{}", wrong.len(), wrong[0]);
    injected
}

/// Marks a pod so that the policy leaves it: its name for the label is not used by any recorded pod.
fn opted_out(review: &Value) -> Value {
    let mut review = review.clone();
    review["request"]["object"]["metadata"]["labels"]["tokenmeter.io/inject"] = "false".into();
    review
}

/// Returns the labels without the mark of [`opted_out`].
fn policy_labels(review: &Value, marked: &Value, name: &str) -> Value {
    let mut labels = marked["metadata"]["labels"].clone();
    let map = labels.as_object_mut().expect(name);
    match review["request"]["object"]["metadata"]["labels"].get("tokenmeter.io/inject") {
        Some(written) => drop(map.insert("tokenmeter.io/inject".to_owned(), written.clone())),
        None => drop(map.remove("tokenmeter.io/inject")),
    }
    labels
}

#[test]
#[ignore = "needs tests/kubernetes/policy/install"]
fn labelled_pods_without_metering_are_named() {
    let config = config();
    let mut inputs = Vec::new();
    let mut left = BTreeMap::new();
    for (name, review) in reviews() {
        let mut review = review.clone();
        let is_created = review["request"]["operation"] == "CREATE";
        let pod = &mut review["request"]["object"];
        if pod["metadata"]["labels"]["tokenmeter.io/inject"] == "false" || !is_created {
            continue;
        }
        pod["metadata"]["labels"]["tokenmeter.io/inject"] = "true".into();
        let is_left = match inject(pod, &config) {
            // A misspelt annotation is named, although the pod is metered.
            Ok(injected) => {
                WEBHOOK_ONLY.contains(&name.as_str())
                    || injected.warnings.iter().any(|warning| warning.contains("is unknown"))
            }
            Err(reason) => reason != inject::Reason::Already,
        };
        inputs.push(deployment(&review));
        inputs.push(review);
        left.insert(name, is_left);
    }
    let results = evaluate(&inputs);
    for (pair, (name, is_left)) in results.chunks(2).zip(&left) {
        let warnings = |result: &Value| result["warnings"].as_array().map_or(0, Vec::len);
        assert_eq!(pair[0].get("error"), None, "{name}");
        assert_eq!(warnings(&pair[1]) > 0, *is_left, "{name}, as a pod: {}", pair[1]["warnings"]);
        // The names of volumes are compared when the pod is created.
        let is_late = name == "volume-taken";
        assert_eq!(
            warnings(&pair[0]) > 0,
            *is_left && !is_late,
            "{name}, as a Deployment: {}",
            pair[0]["warnings"]
        );
    }
}

/// Returns the review of a Deployment with the pod as its template.
fn deployment(review: &Value) -> Value {
    let pod = &review["request"]["object"];
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "model"},
        "spec": {
            "selector": {"matchLabels": {"app": "model"}},
            "template": {"metadata": pod["metadata"], "spec": pod["spec"]},
        },
    });
    let mut review = with_object(review, &object);
    review["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    review["request"]["resource"] = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    review
}

/// The API server bounds the cost of an expression; beyond it a pod would start without a sidecar.
#[test]
#[ignore = "needs tests/kubernetes/policy/install"]
fn large_pod_is_within_the_cost() {
    let (name, mut review) =
        reviews().into_iter().find(|(name, _)| name == "vllm-numeric-port").expect("recorded");
    let pod = &mut review["request"]["object"];
    let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
    let words: Vec<String> = (0..100).map(|at| format!("--option-{at}={}", "x".repeat(60))).collect();
    let args = containers[0]["args"].as_array_mut().expect("a list");
    args.extend(words.iter().map(|word| Value::from(word.as_str())));
    let env: Vec<Value> = (0..100).map(|at| json!({"name": format!("V{at}"), "value": "x"})).collect();
    containers[0]["env"] = env.into();
    for at in 0..9 {
        containers.push(json!({"name": format!("other-{at}"), "image": "other", "args": words}));
    }
    assert_eq!(compare(&[(name, review)]), 1);
}

/// The policy's text lists the values of settings once more.
#[test]
fn policy_knows_the_values_of_settings() {
    let policy = std::fs::read_to_string(kubernetes("policy/policy.yaml")).expect("the policy can be read");
    let policy = policy.split_whitespace().collect::<Vec<_>>().join(" ");
    for values in [KINDS.as_slice(), &NAMES, &ROLES, &USAGES] {
        let list: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        assert!(policy.contains(&format!("in [{}]", list.join(", "))), "{list:?}");
    }
}
