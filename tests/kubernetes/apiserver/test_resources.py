"""The server's own checks of resources see the sidecar as a container of the pod: the one way in which a pod that was
valid is refused with it."""

import pods
from process import eventually

ENOUGH = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


def limited():
    """Returns a pod whose container has all limits."""
    pod = pods.vllm("limited")
    pod["spec"]["containers"][0]["resources"] = ENOUGH
    return pod


def quota(cluster, namespace):
    """Makes a quota of CPU limits, as its controller keeps it."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = {"limits.cpu": "10"}
    one = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "cpu"}, "spec": {"hard": hard}}
    one = cluster.ask("POST", path, one)
    one["status"] = {"hard": hard, "used": {"limits.cpu": "0"}}
    cluster.ask("PUT", f"{path}/cpu/status", one)


def limit_range(cluster, namespace, **limits):
    """Makes a LimitRange of containers."""
    spec = {"limits": [{"type": "Container", **limits}]}
    one = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"}, "spec": spec}
    cluster.ask("POST", f"/api/v1/namespaces/{namespace}/limitranges", one)


def refused(cluster, namespace):
    """Creates the pod until the server knows the check, and returns its message."""
    last = {}

    def is_refused():
        last["status"], last["content"] = cluster.create(namespace, limited(), dry=True)
        return last["status"] == 403

    assert eventually(is_refused, 30), last
    without = limited()
    without["metadata"]["labels"]["tokenmeter.io/inject"] = "false"
    assert cluster.create(namespace, without, dry=True)[0] == 201, "without the sidecar it is valid"
    return last["content"]["message"]


def test_quota_of_cpu_limits_refuses_the_pod(webhook, cluster, namespace):
    """The sidecar has no CPU limit, and such a quota wants one of each container."""
    quota(cluster, namespace)
    assert "must specify limits.cpu" in refused(cluster, namespace)


def test_defaults_of_a_limit_range_apply_to_the_sidecar(webhook, cluster, namespace):
    limit_range(cluster, namespace, default={"cpu": "2"})
    quota(cluster, namespace)

    def own():
        status, created = cluster.create(namespace, limited(), dry=True)
        return status == 201 and pods.sidecars(created)[0]["resources"]["limits"].get("cpu") == "2"

    assert eventually(own, 30)


def test_least_memory_of_a_limit_range_refuses_the_pod(webhook, cluster, namespace):
    limit_range(cluster, namespace, min={"memory": "128Mi"})
    assert "minimum memory usage per Container is 128Mi" in refused(cluster, namespace)
