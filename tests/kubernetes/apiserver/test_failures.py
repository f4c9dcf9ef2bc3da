"""A webhook that fails costs metering and never a pod: failurePolicy Ignore, against the real server."""

import base64
import json
import socket
import time

import pytest

import pods
from cluster import run
from process import eventually
from release import HOOKS, NAME
from stand_in import StandIn, allow, certificate


@pytest.fixture
def stopped(webhook):
    """Returns the webhook, killed for one test."""
    webhook.kill()
    yield webhook
    webhook.start()


def created_unmetered(cluster, namespace, name):
    """Creates a pod, which must succeed without the sidecar, and returns how many seconds it took."""
    start = time.monotonic()
    # A creation that outlasts the webhook's own time-out would end here.
    status, pod = cluster.create(namespace, pods.vllm(name), timeout=30)
    assert status == 201, pod
    assert not pods.is_metered(pod)
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    return time.monotonic() - start


def served(webhook):
    """Returns certificate and key of the chart's Secret."""
    folder = webhook.mounts["/var/run/tokenmeter/tls"]
    return folder / "tls.crt", folder / "tls.key"


def test_stopped_webhook_costs_the_sidecar_only(stopped, cluster, namespace):
    created_unmetered(cluster, namespace, "stopped")


def test_webhook_that_is_back_meters_again(webhook, cluster, namespace):
    webhook.stop()
    created_unmetered(cluster, namespace, "gone")
    webhook.start()
    assert pods.is_metered(cluster.create(namespace, pods.vllm("back"))[1])


def test_hanging_webhook_is_left_after_its_timeout(stopped, cluster, namespace):
    def hang(review):
        stand_in.stopping.wait(60)
        return 200, json.dumps(allow(review["request"])).encode()

    with StandIn(hang, served(stopped), stopped.ports["https"]) as stand_in:
        seconds = created_unmetered(cluster, namespace, "hanging")
        assert stand_in.reviews, "the server asked"
    assert seconds >= 5, "the time-out is the chart's, of webhook.timeoutSeconds"


def test_handshake_that_hangs_is_left_after_its_timeout(stopped, cluster, namespace):
    with socket.create_server(("127.0.0.1", stopped.ports["https"])):
        assert created_unmetered(cluster, namespace, "silent") >= 5


def test_wrong_certificate_is_refused(stopped, cluster, namespace, tmp_path):
    def answer(review):
        return 200, json.dumps(allow(review["request"])).encode()

    with StandIn(answer, certificate(tmp_path, "wrong"), stopped.ports["https"]) as stand_in:
        created_unmetered(cluster, namespace, "wrong")
        assert not stand_in.reviews, "a server without the chart's certificate sees no pod"


def other_uid(review):
    """Answers another review."""
    return 200, json.dumps(allow({"uid": "another"})).encode()


def without_patch_type(review):
    """Has a patch and no type of it."""
    answer = allow(review["request"], [{"op": "remove", "path": "/spec/containers"}])
    del answer["response"]["patchType"]
    return 200, json.dumps(answer).encode()


GARBAGE = {
    "error": lambda review: (500, b"out of order"),
    "not-found": lambda review: (404, b"{}"),
    "empty": lambda review: (200, b""),
    "text": lambda review: (200, b"ok"),
    "bytes": lambda review: (200, bytes(range(256))),
    "request": lambda review: (200, json.dumps(review).encode()),
    "other-kind": lambda review: (200, b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}'),
    "other-uid": other_uid,
    "no-patch-type": without_patch_type,
    "large": lambda review: (200, b'{"a":"' + b"a" * (8 << 20) + b'"}'),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_ignored(kind, stopped, cluster, namespace):
    with StandIn(GARBAGE[kind], served(stopped), stopped.ports["https"]) as stand_in:
        created_unmetered(cluster, namespace, kind)
        assert stand_in.reviews, "the server asked"


@pytest.mark.parametrize("kind", ["not-applicable", "invalid-pod"])
def test_wrong_patch_fails_the_creation(kind, stopped, cluster, namespace):
    """The one fault that failurePolicy does not cover, and why the webhook's patches are tested on random pods."""
    patches = {
        "not-applicable": [{"op": "remove", "path": "/spec/absent"}],
        "invalid-pod": [{"op": "add", "path": "/spec/containers/-", "value": {"name": "vllm", "image": "a"}}],
    }

    def answer(review):
        return 200, json.dumps(allow(review["request"], patches[kind])).encode()

    with StandIn(answer, served(stopped), stopped.ports["https"]):
        status, content = cluster.create(namespace, pods.vllm(kind))
    assert status in (422, 500), content


def test_review_with_a_large_pod_is_answered(webhook, cluster, namespace):
    """The largest pod that the server stores: etcd takes 1.5 MiB."""
    pod = pods.vllm("large")
    pod["metadata"]["annotations"] = {"a": "x" * (200 << 10)}
    pod["spec"]["containers"][0]["env"] = [{"name": f"A{i}", "value": "y" * (100 << 10)} for i in range(10)]
    status, created = cluster.create(namespace, pod)
    assert status == 201, created["message"][:300]
    assert pods.is_metered(created)


def test_idle_connection_that_closes_costs_no_review(webhook, cluster, namespace):
    """The webhook closes connections that are idle for 30 s; the server opens a new one."""
    assert pods.is_metered(cluster.create(namespace, pods.vllm("before"))[1])
    time.sleep(32)
    assert pods.is_metered(cluster.create(namespace, pods.vllm("after"))[1])


def test_registration_that_is_damaged_costs_the_sidecar_only(webhook, cluster, release, namespace):
    """A caBundle of another CA, as after a Secret that was replaced without an upgrade."""
    good = release.configuration()["webhooks"]
    pem = run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout", "/dev/null")
    bundle = base64.b64encode(pem.encode()).decode()
    bad = [{**one, "clientConfig": {**one["clientConfig"], "caBundle": bundle}} for one in good]
    merge = {"content_type": "application/merge-patch+json"}
    cluster.ask("PATCH", f"{HOOKS}/{NAME}", {"webhooks": bad}, **merge)
    try:
        trial = pods.vllm("trial")
        assert eventually(lambda: not pods.is_metered(cluster.create(namespace, trial, dry=True)[1]), 30)
        created_unmetered(cluster, namespace, "damaged")
    finally:
        cluster.ask("PATCH", f"{HOOKS}/{NAME}", {"webhooks": good}, **merge)
