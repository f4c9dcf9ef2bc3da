"""The injection's goldens, made by the tests of sidecar/inject: the pods before and after are valid, and the chart's
render, of which they are made, is the present one."""

import json

import pytest
import yaml

import chart

REVIEWS = sorted((chart.HERE / "reviews").glob("*.yaml"))
EXPECTED = sorted((chart.HERE / "reviews/expected").glob("*.json"))


def test_reviews_are_found():
    assert len(REVIEWS) > 20 and len(EXPECTED) > 20


@pytest.mark.parametrize("path", REVIEWS, ids=lambda path: path.stem)
def test_pod_of_a_review_is_valid(path):
    pod = yaml.safe_load(path.read_text())["request"]["object"]
    chart.validate(pod, "1.35")


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.stem)
def test_injected_pod_is_valid(path):
    pod = json.loads(path.read_text())
    chart.validate(pod, "1.35")
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    for name in ("name", "containerPort"):
        used = [one[name] for own in containers for one in own.get("ports", []) if name in one]
        assert len(set(used)) == len(used), f"a {name} twice: {used}"
    volumes = [one["name"] for one in pod["spec"].get("volumes", [])]
    assert len(set(volumes)) == len(volumes)
    mounted = {one["name"] for own in containers for one in own.get("volumeMounts", [])}
    assert mounted <= set(volumes)


def rendered(mode, name):
    """Returns a template as tests/kubernetes/policy/render renders it."""
    sets = ['injection={"redirect":{"enabled":true}}', f'injection.mode="{mode}"']
    arguments = chart.command("1.36", sets=sets, release="tokenmeter", namespace="tokenmeter-system")
    return chart.helm(*arguments, "--show-only", f"templates/injection/{name}.yaml").stdout


def test_policies_of_the_tests_are_the_charts():
    own = [one for name in ("policy", "policy-unmetered") for one in chart.documents(rendered("policy", name))]
    assert chart.documents((chart.HERE / "policy/policy.yaml").read_text()) == own


def test_configuration_of_the_tests_is_the_charts():
    [document] = chart.documents(rendered("webhook", "config"))
    own = yaml.safe_load(document["data"]["injection.yaml"])
    assert yaml.safe_load((chart.HERE / "policy/config.yaml").read_text()) == own
