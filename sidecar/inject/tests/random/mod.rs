//! Random pods of inference servers, from parts that matter to the injection.

use chance::Chance;
use serde_json::{Map, Value, json};

/// Returns a review of a pod; the same for the same seed and case.
pub(crate) fn review(seed: u64, case: u64) -> Value {
    let mut chance = Chance::new(seed.wrapping_mul(1_000_003) + case);
    let object = pod(&mut chance);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": format!("{seed}-{case}"),
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "models",
            "operation": "CREATE",
            "object": object,
        },
    })
}

const PORTS: [u16; 8] = [80, 8000, 8000, 8080, 8200, 8201, 9464, 11434];

const IMAGES: [&str; 12] = [
    "vllm/vllm-openai:v0.10",
    "docker.io/vllm/vllm-openai@sha256:00",
    "registry:5000/vllm/vllm-openai",
    "ghcr.io/ggml-org/llama.cpp:server",
    "ghcr.io/ggml-org/llama.cpp:full",
    "ghcr.io/huggingface/text-generation-inference:3",
    "ollama/ollama",
    "my-vllm/vllm-openai-fork",
    "vllm-cuda-rhel9:3",
    "huggingface-text-generation-inference-cu124.2-3.ubuntu2204.py311",
    "my_vllm-router",
    "redis:8",
];

const COMMANDS: [&[&str]; 14] = [
    &[],
    &[],
    &[],
    &["vllm", "serve", "model"],
    &["/opt/venv/bin/vllm", "serve"],
    &["python3", "-m", "sglang.launch_server"],
    &["/app/llama-server"],
    &["text-generation-launcher"],
    &["/bin/sh", "-c", "vllm serve model"],
    &["mistralrs-server"],
    &["/bin/sh", "-c", "true\nllama-server\n"],
    &["sleep", "1"],
    &["/usr/bin/env", "bash", "-c", "vllm serve model"],
    &["tini", "--", "sh", "-c", "exec llama-server"],
];

const WORDS: [&str; 21] = [
    "--model",
    "m",
    "--port",
    "--port",
    "-p",
    "--host",
    "0.0.0.0",
    "10.0.0.1",
    "--host=0.0.0.0",
    "--port=x",
    "--config",
    "serve",
    "--ssl-certfile",
    "--",
    "-p8000",
    "-p=80",
    "-pé",
    "--headless",
    "-dpm",
    "--node-rank=0",
    "--node-rank",
];

const ANNOTATIONS: [(&str, &[&str]); 12] = [
    ("container", &["a", "b", "c", ""]),
    ("port", &["8000", "80", "0", "65536", "", "08080"]),
    ("server-port", &["8200", "9000", "1023"]),
    ("loopback", &["true", "true", "false", "no"]),
    ("grace-seconds", &["0", "600", "86401", "x"]),
    ("usage", &["observe", "off"]),
    ("kind", &["auto", "sglang", "x"]),
    ("role", &["decode", "auto", "x"]),
    ("prices", &["p", "p.q", "P", "a..b", "-a"]),
    ("tenants", &["tenants", "a-"]),
    ("image", &["tokenmeter:1", "", " x", "a b"]),
    ("mode", &["takeover", "takeover", "x"]),
];

fn pick<'a, T: ?Sized>(chance: &mut Chance, from: &[&'a T]) -> &'a T {
    from[chance.place(from.len())]
}

fn one_in(chance: &mut Chance, count: u64) -> bool {
    chance.below(count) == 0
}

fn number(chance: &mut Chance) -> u16 {
    PORTS[chance.place(PORTS.len())]
}

fn pod(chance: &mut Chance) -> Value {
    let mut metadata = json!({"generateName": "model-", "labels": {"app": "model"}});
    if one_in(chance, 8) {
        metadata["labels"]["llm-d.ai/role"] = pick(chance, &["prefill", "decode", "both"]).into();
    }
    for (name, values) in ANNOTATIONS {
        if one_in(chance, 12) {
            metadata["annotations"][format!("config.tokenmeter.io/{name}")] = pick(chance, values).into();
        }
    }
    let names = ["a", "b"];
    let count = if one_in(chance, 4) { 2 } else { 1 };
    let containers: Vec<Value> = names[..count].iter().map(|name| container(chance, name)).collect();
    let mut spec = json!({"containers": containers});
    if one_in(chance, 5) {
        let mut init = container(chance, "init");
        if one_in(chance, 2) {
            init["restartPolicy"] = "Always".into();
        }
        spec["initContainers"] = json!([init]);
    }
    if one_in(chance, 3) {
        let name = if one_in(chance, 5) { "tokenmeter-state" } else { "models" };
        spec["volumes"] = json!([{"name": name, "emptyDir": {}}]);
    }
    if one_in(chance, 2) {
        spec["terminationGracePeriodSeconds"] =
            pick(chance, &[&-1, &0, &10, &30, &154, &155, &3600]).to_owned().into();
    }
    if one_in(chance, 4) {
        let sysctl = pick(chance, &["net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_syncookies"]);
        spec["securityContext"] = match chance.below(3) {
            0 => json!({}),
            1 => json!({"fsGroup": 1}),
            _ => json!({"sysctls": [{"name": sysctl, "value": "1"}]}),
        };
    }
    if one_in(chance, 20) {
        spec["hostNetwork"] = true.into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn container(chance: &mut Chance, name: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), name.into());
    fields.insert("image".to_owned(), pick(chance, &IMAGES).into());
    let command = COMMANDS[chance.place(COMMANDS.len())];
    if !command.is_empty() {
        fields.insert("command".to_owned(), json!(command));
    }
    let args: Vec<String> = (0..chance.below(6))
        .map(|_| match chance.below(4) {
            0 => number(chance).to_string(),
            1 => format!("--port={}", number(chance)),
            _ => pick(chance, &WORDS).to_owned(),
        })
        .collect();
    if !args.is_empty() {
        fields.insert("args".to_owned(), json!(args));
    }
    let ports: Vec<Value> = (0..chance.below(3)).map(|at| port(chance, at)).collect();
    if !ports.is_empty() {
        fields.insert("ports".to_owned(), ports.into());
    }
    let env: Vec<Value> = (0..chance.below(3)).map(|_| variable(chance)).collect();
    if !env.is_empty() {
        fields.insert("env".to_owned(), env.into());
    }
    if one_in(chance, 6) {
        fields.insert("envFrom".to_owned(), json!([{"configMapRef": {"name": "settings"}}]));
    }
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        if one_in(chance, 3) {
            let mut action = action(chance);
            if probe != "readinessProbe" && one_in(chance, 4) {
                action["terminationGracePeriodSeconds"] = 10.into();
            }
            fields.insert(probe.to_owned(), action);
        }
    }
    match chance.below(6) {
        0 => drop(fields.insert("lifecycle".to_owned(), json!({"preStop": action(chance)}))),
        1 => drop(fields.insert("lifecycle".to_owned(), json!({"postStart": action(chance)}))),
        _ => {}
    }
    fields.into()
}

fn port(chance: &mut Chance, at: u64) -> Value {
    let mut port = json!({"containerPort": number(chance)});
    if one_in(chance, 2) {
        port["name"] = ["http", "other", "third"][usize::try_from(at).expect("small") % 3].into();
    }
    port
}

fn variable(chance: &mut Chance) -> Value {
    let name = pick(chance, &["PORT", "LLAMA_ARG_PORT", "OLLAMA_HOST", "HOME"]);
    if one_in(chance, 8) {
        return json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}});
    }
    let port = number(chance).to_string();
    let host = format!("0.0.0.0:{port}");
    let value =
        pick(chance, &[port.as_str(), port.as_str(), host.as_str(), "0.0.0.0", ":", "::", "", "10.0.0.1:80"]);
    json!({"name": name, "value": value})
}

/// Returns a probe, or a hook, which has the same actions.
fn action(chance: &mut Chance) -> Value {
    let port: Value = match chance.below(3) {
        0 => pick(chance, &["http", "other", "absent"]).into(),
        _ => number(chance).into(),
    };
    match chance.below(5) {
        0 => json!({"tcpSocket": {"port": port}}),
        1 => json!({"exec": {"command": ["true"]}}),
        2 if one_in(chance, 4) => json!({"httpGet": {"path": "/", "port": port, "scheme": "HTTPS"}}),
        _ => json!({"httpGet": {"path": "/health", "port": port}}),
    }
}
