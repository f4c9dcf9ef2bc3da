"""Examples and manifests: valid, of known servers, of known metrics; the library and Kustomize give the injection's
container; the identities of examples/kubernetes/tenants become tenants."""

import json
import os
import re
import shutil
import subprocess
import time

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

import chart
import manifests

EXAMPLES = chart.ROOT / "examples/kubernetes"
# Not objects of Kubernetes: values of another chart.
VALUES_OF_OTHERS = ["production-stack"]
FILES = [path for path in sorted(EXAMPLES.glob("*.yaml")) if path.stem not in VALUES_OF_OTHERS]
SERVERS = yaml.safe_load((chart.CHART / "files/servers.yaml").read_text())


def strict(document, version="1.35"):
    """Validates an object; KServe's template as a pod."""
    chart.validate(document, version)
    if document["kind"].startswith("LLMInferenceService"):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "template"},
            "spec": document["spec"]["template"],
        }
        chart.validate(pod, version)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_is_valid(path):
    objects = chart.documents(path.read_text())
    assert objects
    for one in objects:
        strict(one)


def recognised(container):
    """Returns the known server that a container runs."""
    line = [*container.get("command", []), *container.get("args", [])]
    flags = next((at for at, word in enumerate(line) if word.startswith("--")), len(line))
    words = " ".join(word.rsplit("/", 1)[-1] for word in line[:flags])
    for server in SERVERS:
        if any(re.search(rf"(^| ){re.escape(one)}( |$)", words) for one in server["words"]):
            return server
        for image in server["images"]:
            name, _, tag = image.partition(":")
            if "command" not in container and re.search(rf"(^|/){re.escape(name)}:{tag}", container["image"]):
                return server
    return None


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem not in ("keda", "kserve")], ids=lambda path: path.stem
)
def test_example_runs_one_known_server_on_its_port(path):
    [(owner, spec)] = chart.pod_specs(chart.documents(path.read_text()))
    servers = [(one, recognised(one)) for one in spec["containers"]]
    [(container, server)] = [pair for pair in servers if pair[1]]
    text = " ".join(container.get("args", []))
    flag = re.search(rf"(?:{'|'.join(server['port_flags']) or 'none'})[ =](\d+)", text)
    port = int(flag.group(1)) if flag else server["port"]
    [declared] = container["ports"]
    assert declared["containerPort"] == port
    template = owner if owner["kind"] == "Pod" else owner["spec"]["template"]
    namespaces = [one for one in chart.documents(path.read_text()) if one["kind"] == "Namespace"]
    opted_in = [one["metadata"]["labels"].get("tokenmeter.io/injection") == "enabled" for one in namespaces]
    assert any(opted_in) or template["metadata"]["labels"].get("tokenmeter.io/inject") == "true"


def test_annotations_of_examples_are_documented():
    document = (chart.ROOT / "sidecar/inject/injection.md").read_text()
    used = {annotation for path in FILES for annotation in re.findall(r"config\.tokenmeter\.io/([a-z-]+)", path.read_text())}
    assert used and not [annotation for annotation in used if f"`{annotation}`" not in document]


def queries():
    """Returns the queries of the ScaledObjects."""
    for one in chart.documents((EXAMPLES / "keda.yaml").read_text()):
        yield from (trigger["metadata"]["query"] for trigger in one["spec"]["triggers"])


def test_queries_of_autoscaling_name_known_metrics():
    known = set(re.findall(r"`(tokenmeter_\w+)`", (chart.ROOT / "sidecar/metrics/metrics.md").read_text()))
    for path in (chart.CHART / "rules").glob("*.yaml"):
        known |= set(re.findall(r"record: (\S+)", path.read_text()))
    named = [name for query in queries() for name in re.findall(r"[a-z][\w:]*(?=\{)", query)]
    assert len(named) == 4 and set(named) <= known


# In flight, recommended, replicas, goodput; the metrics of both triggers (none where no series is).
@pytest.mark.parametrize(
    "in_flight, recommended, goodput, expected",
    [
        # 40 in flight at a knee of 10: five servers at four fifths of it.
        ((20, 20), 10, 0.99, (5, 0)),
        ((20, 20), 10, 0.9, (5, 3)),
        ((0, 0), 10, 0.99, (0, 0)),
    ],
)
def test_autoscaling_asks_for_these_replicas(in_flight, recommended, goodput, expected, tmp_path):
    labels = 'job="chat/vllm"'
    series = [
        *(
            (f'tokenmeter_exchanges_in_flight{{{labels},instance="{at}",model="m"}}', value)
            for at, value in enumerate(in_flight)
        ),
        *((f'tokenmeter_build_info{{{labels},instance="{at}"}}', 1) for at in range(len(in_flight))),
        (
            f'job_model_upstream:tokenmeter_recommended_in_flight:p50_rate1h{{{labels},model="m",upstream="u"}}',
            recommended,
        ),
        (f'job_model_objective:tokenmeter_goodput_exchanges:ratio_rate5m{{{labels},model="m",objective="o"}}', goodput),
    ]
    cases = [
        {"expr": query, "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": value}]}
        for query, value in zip(queries(), expected, strict=True)
    ]
    inputs = [{"series": name, "values": f"{value}x3"} for name, value in series]
    test = {"tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": cases}]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    telemetry = os.environ.get("TOKENMETER_TELEMETRY", os.path.expanduser("~/.cache/tokenmeter/telemetry"))
    result = subprocess.run(
        [f"{telemetry}/bin/promtool", "test", "rules", tmp_path / "test.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "path, made",
    [(manifests.KUSTOMIZE, manifests.kustomize), (manifests.KSERVE, manifests.kserve)],
    ids=["kustomize", "kserve"],
)
def test_manifest_is_made_of_the_chart(path, made):
    if "UPDATE_GOLDEN" in os.environ:
        path.write_text(made())
    assert path.read_text() == made(), f"UPDATE_GOLDEN=1 tests/kubernetes/run writes {path}"


def test_kserve_configuration_is_valid():
    [document] = chart.documents(manifests.KSERVE.read_text())
    strict(document)


def metered(pod, server_container):
    """Checks a pod whose sidecar is written out: the container, the end of the pod, the server behind it."""
    config = manifests.injection()
    [own] = [one for one in pod["initContainers"] if one["name"] == "tokenmeter"]
    for name, value in config["container"].items():
        if name not in ("env", "ports", "image"):
            assert own[name] == value, name
    env = {one["name"]: one.get("value") for one in own["env"]}
    assert env["TOKENMETER_LISTEN"] == "0.0.0.0:8000" and env["TOKENMETER_UPSTREAM"] == "http://127.0.0.1:8200"
    assert {one["containerPort"] for one in own["ports"]} == {8000, 9464}
    assert pod["volumes"] == config["volumes"]
    assert pod["terminationGracePeriodSeconds"] == config["delay_seconds"] + config["grace_seconds"] + 30
    assert server_container["lifecycle"] == {"preStop": {"httpGet": {"path": "/drained", "port": 9464}}}


def test_kustomize_adds_the_sidecar():
    built = subprocess.run(
        ["kubectl", "kustomize", EXAMPLES / "kustomize"], check=True, capture_output=True, text=True
    ).stdout
    [deployment] = chart.documents(built)
    strict(deployment)
    template = deployment["spec"]["template"]
    metered(template["spec"], template["spec"]["containers"][0])
    assert template["metadata"]["labels"]["tokenmeter.io/injected"] == "true"
    [own] = template["spec"]["initContainers"]
    assert own["image"] == "registry.example/tokenmeter:0.1.0"


def test_own_chart_includes_the_sidecar(tmp_path):
    copy = tmp_path / "own-chart"
    shutil.copytree(EXAMPLES / "own-chart", copy)
    # The dependency's path is relative to the example's folder.
    text = (copy / "Chart.yaml").read_text()
    (copy / "Chart.yaml").write_text(text.replace("../../../helm/tokenmeter", str(chart.CHART)))
    chart.helm("dependency", "build", copy)
    objects = chart.render("1.31", chart=copy)
    deployment = chart.named(objects, "Deployment")
    strict(deployment)
    template = deployment["spec"]["template"]
    metered(template["spec"], template["spec"]["containers"][0])
    env = {one["name"]: one.get("value") for one in template["spec"]["initContainers"][0]["env"]}
    assert (
        env["TOKENMETER_KIND"] == "vllm"
        and env["TOKENMETER_USAGE"] == "continuous"
        and env["TOKENMETER_OBJECTIVE"] == "chat"
    )
    # Of the dependency only its test is rendered.
    assert {one["kind"] for one in objects} == {"Deployment", "Pod"}


def test_library_mounts_prices_and_tenants(tmp_path):
    copy = tmp_path / "tokenmeter"
    shutil.copytree(chart.CHART, copy)
    template = """
{{- $pod := dict "context" . "port" 9000 "serverPort" 9001 "role" "decode" "prices" "p" "tenants" "t" }}
apiVersion: v1
kind: Pod
metadata: {name: library}
spec:
  initContainers:
    {{- include "tokenmeter.sidecar" $pod | nindent 4 }}
  containers: [{name: server, image: server}]
  volumes:
    {{- include "tokenmeter.sidecar.volumes" $pod | nindent 4 }}
"""
    (copy / "templates/library.yaml").write_text(template)
    pod = chart.named(chart.render("1.31", chart=copy), "Pod", "library")
    strict(pod)
    [own] = pod["spec"]["initContainers"]
    env = {one["name"]: one.get("value") for one in own["env"]}
    assert env["TOKENMETER_UPSTREAM"] == "http://127.0.0.1:9001" and env["TOKENMETER_ROLE"] == "decode"
    volumes = {one["name"]: one.get("configMap", {}).get("name") for one in pod["spec"]["volumes"]}
    mounts = {one["mountPath"]: volumes[one["name"]] for one in own["volumeMounts"]}
    for kind, name in (("PRICES", "p"), ("TENANTS", "t")):
        folder, _, file = env[f"TOKENMETER_{kind}"].rpartition("/")
        assert mounts[folder] == name and file == f"{kind.lower()}.yaml"


def tenant(file, peer, *fields):
    """Returns what `tokenmeter tenants who` prints about a request."""
    head = "\n".join(["POST /v1/chat/completions HTTP/1.1", *fields, "", "{}"])
    run = [chart.BINARY, "tenants", "who", file.name, "--peer", peer]
    result = subprocess.run(run, input=head, cwd=file.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return dict(line.split(": ", 1) for line in result.stdout.splitlines() if ": " in line)["tenant"]


def test_namespace_of_linkerds_identity_is_the_tenant():
    file = EXAMPLES / "tenants/linkerd.yaml"
    identity = "web.team-a.serviceaccount.identity.linkerd.cluster.local"
    assert tenant(file, "127.0.0.1", f"l5d-client-id: {identity}") == "team-a"
    assert tenant(file, "10.1.2.3", f"l5d-client-id: {identity}") == "outside-the-mesh"
    assert tenant(file, "127.0.0.1") == "outside-the-mesh"


def test_namespace_of_a_service_account_is_the_tenant(tmp_path):
    file = tmp_path / "tenants.yaml"
    shutil.copy(EXAMPLES / "tenants/service-account.yaml", file)
    key = rsa.generate_private_key(65537, 2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**jwk, "kid": "k", "alg": "RS256", "use": "sig"}]}))

    def token(audience):
        claims = {
            "iss": "https://kubernetes.default.svc.cluster.local",
            "aud": [audience],
            "exp": int(time.time()) + 600,
            "sub": "system:serviceaccount:team-a:web",
            "kubernetes.io": {"namespace": "team-a", "pod": {"name": "web-1"}, "serviceaccount": {"name": "web"}},
        }
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "k"})

    assert tenant(file, "10.1.2.3", f"Authorization: Bearer {token('inference')}") == "team-a"
    assert tenant(file, "10.1.2.3", f"Authorization: Bearer {token('other')}") == "default"


def test_namespace_of_istios_certificate_is_the_tenant():
    file = EXAMPLES / "tenants/istio.yaml"
    field = (
        "By=spiffe://cluster.local/ns/chat/sa/default;Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688;"
        'Subject="";URI=spiffe://cluster.local/ns/team-a/sa/web'
    )
    forged = 'URI=spiffe://cluster.local/ns/team-b/sa/web;Subject="'
    assert tenant(file, "127.0.0.6", f"x-forwarded-client-cert: {field}") == "team-a"
    assert tenant(file, "127.0.0.6", f"x-forwarded-client-cert: {forged},{field}") == "team-a"
    assert tenant(file, "10.1.2.3", f"x-forwarded-client-cert: {field}") == "outside-the-mesh"

