"""The reviews of tests/kubernetes/reviews: the written ones are what the server sends for their pods, the recorded ones
are what it sent once (RECORD=1 records them), and with each of them the pod is created."""

import copy
import json
import os

import pytest
import yaml

import chart
import pods
from process import eventually
from stand_in import Registration, StandIn, allow, certificate

FOLDER = chart.HERE / "reviews"
WRITTEN = sorted(path for path in FOLDER.glob("*.yaml") if not path.stem.startswith("recorded-"))
WATCHED = {"watched": "on"}
# What the server adds to a pod's metadata, and the injection does not read; and the identity of a review.
OWN = {"less.request.object.metadata.creationTimestamp", "less.request.object.metadata.managedFields", "other.request.uid"}
# What 1.20 drops of the written pods: native sidecars (1.29), the operating system (1.23), gRPC probes (1.24), a
# probe's own deadline (1.21).
NEWER = {"more.request.object.spec.initContainers[].restartPolicy", "more.request.object.spec.os"}
NEWER |= {"more.request.object.spec.containers[].readinessProbe"}
NEWER |= {"more.request.object.spec.containers[].startupProbe.terminationGracePeriodSeconds"}
# The user of the written reviews is impersonated, which 1.20 does without the uid.
IMPERSONATED = {"more.request.userInfo.uid"}
KNOWN = OWN | NEWER | IMPERSONATED


CONTROLLER = {"username": "system:serviceaccount:kube-system:replicaset-controller"}
OPERATOR = {"username": "kubernetes-admin", "groups": ["kubeadm:cluster-admins"]}
# By name: the pod of a ReplicaSet, a pod with a name, and a change of one.
RECORDED = {
    "recorded-created": (CONTROLLER, "CREATE", {"generateName": "vllm-7d4b9c6f5d-"}),
    "recorded-named": (OPERATOR, "CREATE", {"name": "recorded"}),
    "recorded-updated": (OPERATOR, "UPDATE", {"generateName": "vllm-"}),
}
# The outcomes of the reviews, as tests of sidecar/inject have them.
OUTCOMES = {
    name: outcome
    for name, _, outcome in [
        line.partition(": ") for line in (FOLDER / "expected/outcomes.txt").read_text().splitlines() if line[0] != " "
    ]
}
# With the chart's default values there is no mode `redirect`; and this server drops the operating system of a pod.
OUTCOMES.update({name: "mode" for name in OUTCOMES if name.startswith("redirect-")})
OUTCOMES["windows"] = "injected"


def read(path):
    """Returns a review of a file."""
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def recorder(cluster, tmp_path_factory):
    """Returns the server that records reviews of creations and updates in namespaces with the label WATCHED."""
    # The user of the written review of a pod without an owner.
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "kubeadm:cluster-admins"}
    binding = {**kind, "metadata": {"name": "kubeadm:cluster-admins"}, "roleRef": role, "subjects": [group]}
    cluster.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    for name in {read(path)["request"]["namespace"] for path in WRITTEN}:
        cluster.namespace(name, **WATCHED)
    files = certificate(tmp_path_factory.mktemp("recorder"), "recorder")
    rules = [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    with StandIn(lambda one: (200, json.dumps(allow(one["request"])).encode()), files) as stand_in:
        with Registration(cluster, "aa-recorder", stand_in, files[0], WATCHED, rules):
            assert eventually(lambda: cluster.create("models", pods.vllm("any"), dry=True) and stand_in.reviews, 30)
            yield stand_in


def impersonation(request):
    """Returns the headers by which a request has the user of a review."""
    user = request["userInfo"]
    headers = {"impersonate_user": user["username"]}
    # The server knows the groups of a service account.
    if not user["username"].startswith("system:serviceaccount:"):
        headers["impersonate_group"] = user["groups"][0]
    return headers


def older(pod):
    """Returns the pod without what makes it invalid when this server drops a part: a probe that has gRPC only."""
    pod = copy.deepcopy(pod)
    for container in pod["spec"]["containers"]:
        for name in [name for name, probe in container.items() if isinstance(probe, dict) and "grpc" in probe]:
            del container[name]
    return pod


def sent(request, recorder, cluster):
    """Returns the review that the server sends when the same user creates, or changes, the pod of a written one."""
    path = f"/api/v1/namespaces/{request['namespace']}/pods"
    user = impersonation(request)
    created = cluster.ask("POST", path, older(request["object"]), **user)
    if request["operation"] == "UPDATE":
        recorder.reviews.clear()
        labels = {"metadata": {"labels": {"release": "2"}}}
        name = created["metadata"]["name"]
        cluster.ask("PATCH", f"{path}/{name}", labels, content_type="application/merge-patch+json", **user)
    review = recorder.reviews.pop()
    recorder.reviews.clear()
    return review


def differences(written, sent, path=""):
    """Yields the paths at which a written review differs from a sent one: more, less or another value."""
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


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_written_review_is_what_the_server_sends(path, recorder, cluster):
    written = read(path)
    assert set(differences(written, sent(written["request"], recorder, cluster))) - KNOWN == set()


def shape(value, path=""):
    """Yields each path of a review with the type of its value."""
    yield path, type(value).__name__
    if isinstance(value, dict):
        for key, inner in value.items():
            # The field managers' names are paths of the pod's fields.
            if key != "fieldsV1":
                yield from shape(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from shape(inner, f"{path}[]")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_review_has_the_form_of_a_sent_one(name, recorder, cluster):
    user, operation, metadata = RECORDED[name]
    pod = pods.vllm("any")
    pod["metadata"] = {**metadata, "labels": {"app": "model"}}
    request = {"namespace": "models", "userInfo": user, "operation": operation, "object": pod}
    review = sent(request, recorder, cluster)
    path = FOLDER / f"{name}.yaml"
    if "RECORD" in os.environ:
        head = "# Recorded from kube-apiserver 1.20.2: RECORD=1 tests/kubernetes/apiserver/run writes it.\n"
        path.write_text(head + yaml.safe_dump(review, sort_keys=False))
    assert set(shape(read(path))) == set(shape(review))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_pod_of_a_review_is_created(path, webhook, cluster, namespace):
    """The server applies each patch and finds each changed pod valid: a fault in one would stop a rollout."""
    request = read(path)["request"]
    pod = older(request["object"])
    name = path.stem
    pod["metadata"] = {key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]}
    pod["metadata"]["name"] = name
    status, created = cluster.create(namespace, pod)
    assert status == 201, created["message"]
    outcome = "injected" if request["operation"] == "UPDATE" else OUTCOMES[name]
    # A pod that opts out is not shown to the webhook.
    assert webhook.outcomes(f"{namespace}/{name}") == ([outcome] if outcome != "opted_out" else [])
    before = [one["name"] for one in pods.sidecars(pod)]
    assert [one["name"] for one in pods.sidecars(created)] == (["tokenmeter"] if outcome == "injected" else before)
