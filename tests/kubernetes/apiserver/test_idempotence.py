"""A pod gets one sidecar, however often the server asks."""

import copy
import json

import pods
from process import eventually
from stand_in import Registration, StandIn, allow, certificate


def patching(change):
    """Returns the answer of a webhook that applies `change` to pods: a function from pod to patch."""
    def answer(review):
        request = review["request"]
        return 200, json.dumps(allow(request, change(request["object"]))).encode()

    return answer


def another_sidecar(pod):
    """Adds a container to pods that lack it, as a mesh does."""
    if any(one["name"] == "mesh" for one in pod["spec"]["containers"]):
        return None
    return [{"op": "add", "path": "/spec/containers/0", "value": {"name": "mesh", "image": "mesh:1"}}]


def test_sidecar_stays_alone_when_a_later_webhook_edits_the_pod(webhook, cluster, tmp_path):
    files = certificate(tmp_path, "later")
    name = cluster.namespace("edited-later", **{"tokenmeter.io/injection": "enabled", "mesh": "on"})
    # Webhooks run in the order of their names, so this one runs after tokenmeter.
    mesh = StandIn(patching(another_sidecar), files)
    with mesh, Registration(cluster, "zz-mesh", mesh, files[0], {"mesh": "on"}):
        created = until_both(cluster, name, "later")
    assert [one["name"] for one in created["spec"]["containers"]] == ["mesh", "vllm", "tokenmeter"]
    assert webhook.outcomes(f"{name}/later") == ["injected", "already"]


def test_server_that_a_later_webhook_adds_is_metered(webhook, cluster, tmp_path):
    """The pod is without a server until a webhook after tokenmeter adds it: the server asks again."""
    files = certificate(tmp_path, "adds")
    [server] = pods.vllm("any")["spec"]["containers"]

    def add(pod):
        if any(one["name"] == "vllm" for one in pod["spec"]["containers"]):
            return None
        return [{"op": "add", "path": "/spec/containers/-", "value": server}]

    pod = pods.vllm("late")
    pod["spec"]["containers"] = [{"name": "web", "image": "nginx"}]
    name = cluster.namespace("added-later", **{"tokenmeter.io/injection": "enabled", "mesh": "on"})
    mesh = StandIn(patching(add), files)
    with mesh, Registration(cluster, "zz-adds", mesh, files[0], {"mesh": "on"}):
        created = until(cluster, name, pod, lambda one: len(one["spec"]["containers"]) > 1)
    assert pods.is_metered(created)
    assert [one["name"] for one in created["spec"]["containers"]] == ["web", "vllm", "tokenmeter"]
    assert webhook.outcomes(f"{name}/late")[-2:] == ["no_server", "injected"]


def test_sidecar_follows_an_earlier_webhook(webhook, cluster, tmp_path):
    files = certificate(tmp_path, "earlier")
    name = cluster.namespace("edited-earlier", **{"tokenmeter.io/injection": "enabled", "mesh": "on"})
    mesh = StandIn(patching(another_sidecar), files)
    with mesh, Registration(cluster, "aa-mesh", mesh, files[0], {"mesh": "on"}):
        created = until_both(cluster, name, "earlier")
    assert [one["name"] for one in created["spec"]["containers"]] == ["mesh", "vllm", "tokenmeter"]


def until_both(cluster, namespace, name):
    """Creates a pod, again until the other webhook edits it: the server learns of it shortly after it is stored."""
    return until(
        cluster, namespace, pods.vllm(name), lambda pod: any(one["name"] == "mesh" for one in pod["spec"]["containers"])
    )


def until(cluster, namespace, pod, condition):
    """Creates the pod when a dry run of another name fulfils the condition, and returns it."""
    trial = copy.deepcopy(pod)
    trial["metadata"]["name"] = "trial"
    assert eventually(lambda: condition(cluster.create(namespace, trial, dry=True)[1]), 30)
    status, created = cluster.create(namespace, pod)
    assert status == 201 and condition(created), created
    assert pods.is_metered(created)
    return created


def test_update_of_a_metered_pod_changes_nothing_else(webhook, cluster, namespace):
    _, created = cluster.create(namespace, pods.vllm("updated"))
    before = webhook.outcomes(f"{namespace}/updated")
    path = f"/api/v1/namespaces/{namespace}/pods/updated"
    patch = {"metadata": {"labels": {"release": "2"}}, "spec": {"activeDeadlineSeconds": 600}}
    updated = cluster.ask("PATCH", path, patch, content_type="application/strategic-merge-patch+json")
    assert updated["spec"].pop("activeDeadlineSeconds") == 600
    assert updated["spec"] == created["spec"]
    # Updates are not among the rules: the server does not ask.
    assert webhook.outcomes(f"{namespace}/updated") == before


def test_copy_of_a_metered_pod_is_created_as_it_is(webhook, cluster, namespace):
    _, created = cluster.create(namespace, pods.vllm("first"))
    copied = copy.deepcopy(created)
    metadata = created["metadata"]
    copied["metadata"] = {"name": "second", "labels": metadata["labels"], "annotations": metadata["annotations"]}
    status, second = cluster.create(namespace, copied)
    assert status == 201, second
    assert pods.is_metered(second)
    assert second["spec"] == created["spec"]
    assert webhook.outcomes(f"{namespace}/second") == ["already"]


def test_container_of_the_owner_with_the_sidecars_name_stays(webhook, cluster, namespace):
    pod = pods.vllm("own")
    pod["spec"]["containers"].append({"name": pods.SIDECAR, "image": "own:1"})
    status, created = cluster.create(namespace, pod)
    assert status == 201
    [own] = pods.sidecars(created)
    assert own["image"] == "own:1"
    assert webhook.outcomes(f"{namespace}/own") == ["already"]
