"""The objects of the chart, as a real server accepts and keeps them."""

import json

import pytest
import yaml

import chart
import pods
from cluster import run
from process import eventually
from release import NAME, NAMESPACE, OLDER

CUSTOM = {"podmonitor": "podmonitors", "prometheusrule": "prometheusrules", "certificate": "certificates"}
CUSTOM = {**CUSTOM, "issuer": "issuers"}
# With ports: the ranges of a policy without them are of Kubernetes 1.22 (endPort), and Helm refuses them here.
POLICY = 'networkPolicy={"enabled":true,"namespaces":["chat"],"publicPorts":[8000]}'
ALL = "all"


def lost(rendered, kept, path=""):
    """Returns the paths of what was rendered and is not kept."""
    if isinstance(rendered, dict) and isinstance(kept, dict):
        for key, value in rendered.items():
            if value not in (None, {}, []):
                yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(rendered, list) and isinstance(kept, list) and len(rendered) == len(kept):
        for one, other in zip(rendered, kept):
            yield from lost(one, other, f"{path}[]")
    elif rendered != kept:
        yield path


def manifest(release, name):
    """Returns the objects of a release with those that the server keeps."""
    text = release.helm("get", "manifest", name).stdout
    kept = release.cluster.kubectl("get", "--output", "json", "-f", "-", input=text)
    kept = json.loads(kept)["items"]
    rendered = chart.documents(text)
    assert len(rendered) == len(kept)
    return list(zip(rendered, kept))


def check(release, name):
    """Compares what is rendered with what is kept: the server drops and changes nothing."""
    for rendered, kept in manifest(release, name):
        assert not set(lost(rendered, kept)), f"{rendered['kind']} {rendered['metadata']['name']}"


@pytest.fixture
def everything(release, cluster):
    """Returns the name for a second release, which is removed after the test."""
    for name in ("chat", "code"):
        cluster.namespace(name)
    yield ALL
    release.helm("uninstall", ALL, "--ignore-not-found")


@pytest.fixture
def operators(cluster):
    """Returns when the kinds of the Prometheus operator and of cert-manager are known; they leave with the test."""
    made = []
    for singular, plural in CUSTOM.items():
        schema = json.loads((chart.HERE / f"kinds/{singular}.json").read_text())["properties"]
        group, version = schema["apiVersion"]["const"].split("/")
        names = {"singular": singular, "plural": plural, "kind": schema["kind"]["const"]}
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        one = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [one]}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        cluster.ask("POST", DEFINITIONS, {**kind, "metadata": {"name": f"{plural}.{group}"}, "spec": spec})
        made.append(f"{plural}.{group}")
        path = f"/apis/{group}/{version}/{plural}"
        assert eventually(lambda path=path: cluster.call("GET", path)[0] == 200, 60)
        assert eventually(lambda path=path: listed(cluster, path), 60)
    yield
    for name in made:
        cluster.ask("DELETE", f"{DEFINITIONS}/{name}")


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def listed(cluster, path):
    """Returns whether the server lists a kind among those of its group."""
    group, plural = path.rsplit("/", 1)
    return any(one["name"] == plural for one in cluster.call("GET", group)[1].get("resources", []))


def test_version_below_the_charts_is_refused(release):
    message = release.helm("install", "older", chart.CHART, check=False).stderr
    assert "chart requires kubeVersion: >=1.25.0-0 which is incompatible with Kubernetes v1.20.2" in message


@pytest.mark.parametrize(
    "sets, message",
    [
        ('injection.mode="policy"', "injection.mode: policy needs Kubernetes 1.36, this is v1.20.2"),
        ("sidecar.native=true", "sidecar.native: true needs Kubernetes 1.29, this is v1.20.2"),
    ],
)
def test_values_beyond_the_server_are_refused(sets, message, release):
    result = release.apply("install", ALL, sets=[sets], check=False)
    assert result.returncode != 0 and message in result.stderr


def test_release_is_kept_as_rendered(release):
    check(release, NAME)


def test_mode_and_container_follow_the_server(release):
    """Helm asks this server for its version: no kind that it does not know, and the plain container."""
    kinds = [rendered["kind"] for rendered, _ in manifest(release, NAME)]
    assert "MutatingWebhookConfiguration" in kinds
    assert not [kind for kind in kinds if "AdmissionPolicy" in kind]
    config = yaml.safe_load(release.object("configmaps", f"{NAME}-injection")["data"]["injection.yaml"])
    assert config["native"] is False and "restartPolicy" not in config["container"]
    # The sleep hook needs 1.30.
    assert "lifecycle" not in release.deployment()["spec"]["template"]["spec"]["containers"][0]


def test_sidecar_is_a_plain_container(webhook, cluster, namespace):
    """Below 1.29 a server drops the restart policy of init containers: a native sidecar would be an init container that
    never ends, and its pod would never start."""
    pod = pods.vllm("native", labels={"tokenmeter.io/inject": "false"})
    pod["spec"]["initContainers"] = [{"name": "first", "image": "a", "restartPolicy": "Always"}]
    _, created = cluster.create(namespace, pod)
    assert "restartPolicy" not in created["spec"]["initContainers"][0]

    _, created = cluster.create(namespace, pods.vllm("plain"))
    assert "initContainers" not in created["spec"]
    assert [one["name"] for one in created["spec"]["containers"]] == ["vllm", pods.SIDECAR]
    [config] = chart.documents(webhook.release.object("configmaps", f"{NAME}-injection")["data"]["injection.yaml"])
    # The server keeps each field of the container; variables and ports of the pod are added to it.
    [own] = pods.sidecars(created)
    expected = config["container"]
    for name in ("env", "volumeMounts"):
        own[name], expected[name] = by_name(own[name]), by_name(expected[name])
        expected[name] = {key: value for key, value in expected[name].items() if key != "TOKENMETER_DRAIN_GRACE_MS"}
    assert set(lost(expected, own)) <= {".ports"}
    assert set(lost(config["volumes"], created["spec"]["volumes"][-1:])) == set()


def by_name(entries):
    """Returns the entries of a list by their names."""
    return {one["name"]: one for one in entries}


def test_release_with_all_values_is_kept_as_rendered(release, everything, operators):
    values = [chart.VALUES["everything"]]
    release.apply("install", everything, values)
    check(release, everything)
    kinds = {rendered["kind"] for rendered, _ in manifest(release, everything)}
    assert {"CronJob", "NetworkPolicy", "PodMonitor", "PrometheusRule", "Certificate", "PodDisruptionBudget"} <= kinds
    # An upgrade changes no field that cannot change.
    release.apply("upgrade", everything, values, ['injection={"mode":"none"}'])
    release.helm("rollback", everything, "1")
    check(release, everything)


def test_release_that_is_removed_leaves_nothing(release, everything, cluster):
    release.apply("install", everything, sets=[POLICY])
    objects = manifest(release, everything)
    release.helm("uninstall", everything)
    for _, kept in objects:
        assert cluster.kubectl("get", "-f", "-", "--ignore-not-found", input=json.dumps(kept)) == "", kept["metadata"]


def test_kinds_without_their_operator_fail_before_anything_is_made(release, everything, cluster):
    sets = ['monitoring={"rules":{"enabled":true},"podMonitor":{"enabled":true}}']
    result = release.apply("install", everything, sets=sets, check=False)
    assert result.returncode != 0
    assert 'no matches for kind "PrometheusRule" in version "monitoring.coreos.com/v1"' in result.stderr
    label = f"app.kubernetes.io/instance={ALL}"
    kinds = "services,deployments,configmaps,serviceaccounts,mutatingwebhookconfigurations"
    assert cluster.kubectl("get", kinds, "--all-namespaces", "--selector", label) == ""


def test_rendered_objects_are_applied_by_kubectl(release, cluster):
    """The same objects without a release, as Argo CD applies them."""
    text = chart.helm(*chart.command("1.25", release="applied", namespace=NAMESPACE)).stdout
    text = run("sed", OLDER, input=text)
    applied = cluster.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=text)
    assert len(applied.splitlines()) == len(chart.documents(text))
