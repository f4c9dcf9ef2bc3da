"""Pods of the tests, and what is asked about created ones."""

SIDECAR = "tokenmeter"


def vllm(name, labels=None, **spec):
    """Returns a pod that runs vLLM."""
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.10.1",
        "args": ["--model", "Qwen/Qwen2.5-0.5B-Instruct"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}},
    }
    metadata = {"name": name, "labels": {"app": "model", **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def sidecars(pod):
    """Returns the sidecars of a pod."""
    spec = pod["spec"]
    return [one for one in [*spec["containers"], *spec.get("initContainers", [])] if one["name"] == SIDECAR]


def is_metered(pod):
    """Returns whether a pod has the sidecar; a part of it without the rest is an error."""
    found = sidecars(pod)
    label = pod["metadata"].get("labels", {}).get("tokenmeter.io/injected")
    assert (label == "true") == bool(found), pod["metadata"]
    assert len(found) < 2
    return bool(found)
