"""The hand-written reviews of tests/kubernetes/reviews, compared with those that the server sends for the same pods.
With RECORD=1 some of the latter are written beside them."""

import base64
import json
import os

import pytest
import yaml

import chart
import pods
from process import eventually
from stand_in import Registration, StandIn, allow, certificate

REVIEWS = sorted(path for path in (chart.HERE / "reviews").glob("*.yaml") if not path.stem.startswith("recorded-"))
OUTCOMES = {
    line.split(": ")[0]: line.split(": ")[1]
    for line in (chart.HERE / "reviews/expected/outcomes.txt").read_text().splitlines()
    if not line.startswith(" ")
}
RECORDED = ["vllm-named-port", "init-containers", "raw-pod"]
WATCHED = {"watched": "on"}


def read(path):
    """Returns the request of a review."""
    return yaml.safe_load(path.read_text())["request"]


@pytest.fixture(scope="module")
def recorder(cluster, tmp_path_factory):
    """Returns the server that records reviews: those of creations and updates of pods in the namespace `models`."""
    # The user of the hand-written review of a pod without an owner.
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "kubeadm:cluster-admins"}
    binding = {**kind, "metadata": {"name": "kubeadm:cluster-admins"}, "roleRef": role, "subjects": [group]}
    cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    cluster.namespace("models", **WATCHED)
    files = certificate(tmp_path_factory.mktemp("recorder"), "recorder")
    rules = [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    with StandIn(lambda one: (200, json.dumps(allow(one["request"])).encode()), files) as stand_in:
        with Registration(cluster, "aa-recorder", stand_in, files[0], WATCHED, rules):
            assert eventually(lambda: cluster.create("models", pods.vllm("any"), dry=True) and stand_in.reviews, 30)
            yield stand_in


def recorded(request, recorder, cluster):
    """Returns the review that the server sends for the pod of a hand-written one, created by the same user."""
    user = request["userInfo"]
    as_user = {"impersonate_user": user["username"]}
    if not user["username"].startswith("system:serviceaccount:"):
        as_user["impersonate_group"] = user["groups"][0]
    pod = json.loads(json.dumps(request["object"]))
    if request["operation"] == "UPDATE":
        created = cluster.ask("POST", "/api/v1/namespaces/models/pods", pod)
        path = f"/api/v1/namespaces/models/pods/{created['metadata']['name']}"
        recorder.reviews.clear()
        patch = {"metadata": {"labels": {"changed": "true"}}}
        cluster.ask("PATCH", path, patch, content_type="application/merge-patch+json")
    else:
        recorder.reviews.clear()
        status, created = cluster.create("models", pod, **as_user)
        assert status == 201, created
    [review] = recorder.reviews
    return review


def differences(written, sent, path=""):
    """Yields the paths at which a written review differs from a sent one: more, less or another."""
    if isinstance(written, dict) and isinstance(sent, dict):
        for key in sorted({*written, *sent}):
            if key not in sent:
                yield f"more{path}.{key}"
            elif key not in written:
                yield f"less{path}.{key}"
            else:
                yield from differences(written[key], sent[key], f"{path}.{key}")
    elif isinstance(written, list) and isinstance(sent, list) and len(written) == len(sent):
        for one, other in zip(written, sent):
            yield from differences(one, other, f"{path}[]")
    elif written != sent:
        yield f"other{path}"


@pytest.mark.parametrize("path", REVIEWS, ids=lambda path: path.stem)
def test_written_review_has_the_form_of_a_sent_one(path, recorder, cluster):
    written = yaml.safe_load(path.read_text())
    sent = recorded(written["request"], recorder, cluster)
    print("\n".join(sorted(set(differences(written, sent)))))
