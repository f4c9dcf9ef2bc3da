"""The webhook as the chart starts it: the binary takes the rendered arguments, certificate and configuration, and meters
the pods of the examples."""

import base64
import http.client
import json
import signal
import socket
import ssl
import subprocess
import time

import jsonpatch
import pytest
import yaml

import chart
from test_examples import EXAMPLES
from test_life import free_port


@pytest.fixture(scope="module")
def webhook(tmp_path_factory):
    """Returns a function that posts a review to a running webhook."""
    folder = tmp_path_factory.mktemp("webhook")
    objects = chart.render("1.31")
    data = next(one["data"] for one in objects if "injection.yaml" in one.get("data", {}))
    (folder / "injection.yaml").write_text(data["injection.yaml"])
    for name, text in chart.named(objects, "Secret")["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    [container] = chart.named(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    port = free_port()
    words = [*container["command"], *container["args"]]
    mounts = {one["mountPath"]: str(folder) for one in container["volumeMounts"]}
    for path, own in mounts.items():
        words = [word.replace(path + "/", own + "/") for word in words]
    words = [word.replace(f"0.0.0.0:{container['ports'][0]['containerPort']}", f"127.0.0.1:{port}") for word in words]
    log = open(folder / "log", "w")
    process = subprocess.Popen([chart.BINARY, *words[1:]], stdout=log, stderr=log, cwd=folder)
    service = chart.named(objects, "Service")["metadata"]["name"]
    context = ssl.create_default_context(cafile=folder / "ca.crt")

    def ask(method, path, body=None):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        # The API server connects to the Service, and verifies its name.
        connection.sock = context.wrap_socket(
            socket.create_connection(("127.0.0.1", port), 10), server_hostname=f"{service}.tm-system.svc"
        )
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    deadline = time.monotonic() + 60
    while True:
        try:
            if ask("GET", container["readinessProbe"]["httpGet"]["path"])[0] == 200:
                break
        except OSError:
            pass
        assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.05)
    assert ask("GET", container["livenessProbe"]["httpGet"]["path"])[0] == 200

    def review(pod):
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        resource = {"group": "", "version": "v1", "resource": "pods"}
        request = {
            "uid": "u",
            "kind": kind,
            "resource": resource,
            "namespace": "chat",
            "operation": "CREATE",
            "userInfo": {},
            "object": pod,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        # The path of the MutatingWebhookConfiguration.
        hooks = chart.named(objects, "MutatingWebhookConfiguration")["webhooks"]
        code, text = ask("POST", hooks[0]["clientConfig"]["service"]["path"], json.dumps(body))
        assert code == 200, text
        response = json.loads(text)["response"]
        assert response["allowed"] is True and response["uid"] == "u"
        return response

    yield review
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    log.close()


PODS = ["vllm", "sglang", "llama-cpp", "ollama", "tgi", "pod", "inference-pool", "llm-d-decode"]


def pod_of(name):
    """Returns the pod of an example, and the target port of its Service or pool."""
    objects = chart.documents((EXAMPLES / f"{name}.yaml").read_text())
    [(owner, spec)] = chart.pod_specs(objects)
    metadata = owner["metadata"] if owner["kind"] == "Pod" else owner["spec"]["template"]["metadata"]
    targets = [one["spec"]["ports"][0]["targetPort"] for one in objects if one["kind"] == "Service"]
    targets += [one["spec"]["targetPorts"][0]["number"] for one in objects if one["kind"] == "InferencePool"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": name}, "spec": spec}, targets


@pytest.mark.parametrize("name", PODS)
def test_example_is_metered(name, webhook):
    pod, targets = pod_of(name)
    response = webhook(pod)
    assert "patch" in response, response
    after = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
    chart.validate(after, "1.31")
    [own] = [one for one in after["spec"]["initContainers"] if one["name"] == "tokenmeter"]
    env = {one["name"]: one.get("value") for one in own["env"]}
    [model] = [one for one in after["spec"]["containers"] if one["name"] != "tokenmeter"]
    # Clients that use the number or the name reach the sidecar.
    listen = int(env["TOKENMETER_LISTEN"].rsplit(":", 1)[1])
    # A Service finds a name in any container; all are in one network namespace.
    ports = {one["name"]: one["containerPort"] for container in (own, model) for one in container["ports"]}
    for target in targets:
        assert ports.get(target, target) == listen
    server = env["TOKENMETER_UPSTREAM"].rsplit(":", 1)[1]
    assert server != str(listen)
    assert server in yaml.safe_dump(model), "the server moved"
    assert after["metadata"]["labels"]["tokenmeter.io/injected"] == "true"
    drain = int(env["TOKENMETER_DRAIN_DELAY_MS"]) + int(env["TOKENMETER_DRAIN_GRACE_MS"])
    assert after["spec"]["terminationGracePeriodSeconds"] >= drain // 1000 + 30
    assert model["lifecycle"] == {"preStop": {"httpGet": {"path": "/drained", "port": 9464}}}
    # A second review changes nothing.
    assert "patch" not in webhook(after)


def test_llm_d_pod_is_metered_between_its_proxy_and_vllm(webhook):
    pod, _ = pod_of("llm-d-decode")
    after = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(webhook(pod)["patch"])))
    [own] = [one for one in after["spec"]["initContainers"] if one["name"] == "tokenmeter"]
    env = {one["name"]: one.get("value") for one in own["env"]}
    assert env["TOKENMETER_LISTEN"].endswith(":8200") and env["TOKENMETER_UPSTREAM"].endswith(":8201")
    assert env["TOKENMETER_ROLE"] == "decode"
    proxy = after["spec"]["initContainers"][0]
    assert proxy == pod["spec"]["initContainers"][0]


def test_pod_without_a_server_is_left(webhook):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    }
    assert "patch" not in webhook(pod)
