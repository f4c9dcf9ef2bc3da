"""Which pods the API server shows to the webhook, by the labels of pods and namespaces."""

import pytest

import pods
from release import NAMESPACE

INJECT = "tokenmeter.io/inject"


@pytest.mark.parametrize("value", ["enabled", "disabled", None])
@pytest.mark.parametrize("own", ["true", "false", None])
def test_labels_decide(value, own, webhook, cluster):
    labels = {"tokenmeter.io/injection": value} if value else {}
    name = cluster.namespace(f"labelled-{value}".lower(), **labels)
    pod = pods.vllm(f"own-{own}".lower(), labels={INJECT: own} if own else {})
    status, created = cluster.create(name, pod)
    assert status == 201, created
    asked = value == "enabled" and own != "false" or value is None and own == "true"
    assert pods.is_metered(created) == asked
    # The server asks once about such a pod, and about no other: it costs them nothing.
    assert webhook.outcomes(f"{name}/{pod['metadata']['name']}") == (["injected"] if asked else [])


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "kube-node-lease", NAMESPACE])
def test_excluded_namespace_is_left(name, webhook, cluster):
    cluster.namespace(name, **{"tokenmeter.io/injection": "enabled"})
    status, created = cluster.create(name, pods.vllm("asks", labels={INJECT: "true"}))
    assert status == 201, created
    assert not pods.is_metered(created)
    assert webhook.outcomes(f"{name}/asks") == []


def test_pod_of_a_template_is_metered(webhook, cluster, namespace):
    pod = pods.vllm("any")
    pod["metadata"] = {"generateName": "vllm-5d4b9c6f5d-", "labels": {"app": "model"}}
    status, created = cluster.create(namespace, pod)
    assert status == 201 and pods.is_metered(created)


def test_pod_without_a_server_is_left(webhook, cluster, namespace):
    pod = pods.vllm("web", labels={INJECT: "true"})
    pod["spec"]["containers"][0] = {"name": "web", "image": "nginx"}
    status, created = cluster.create(namespace, pod)
    assert status == 201 and not pods.is_metered(created)
    # Its label asks, so the creator is told why not.
    assert any("no container runs a known inference server" in one for one in created["warnings"])
    assert webhook.outcomes(f"{namespace}/web") == ["no_server"]


def test_dry_run_shows_the_sidecar(webhook, cluster, namespace):
    status, shown = cluster.create(namespace, pods.vllm("dry"), dry=True)
    assert status == 201 and pods.is_metered(shown)
    assert cluster.call("GET", f"/api/v1/namespaces/{namespace}/pods/dry")[0] == 404
