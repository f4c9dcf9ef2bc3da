"""Renders: every set of values, for every version of Kubernetes, is valid, restricted and equal to its golden."""

import os
import re
import tarfile

import pytest

import chart

UPDATE = "UPDATE_GOLDEN" in os.environ
# 1.28 has no native sidecars; 1.31 is the webhook with one; 1.36 the policy.
GOLDEN = [("default", version) for version in ("1.28", "1.31", "1.36")]
GOLDEN += [(name, "1.31") for name in ("everything", "existing-certificate", "own-issuer")]


@pytest.mark.parametrize("version", chart.VERSIONS)
@pytest.mark.parametrize("name", chart.VALUES)
def test_every_object_is_valid(name, version):
    objects = chart.render(version, [chart.VALUES[name]])
    for one in objects:
        chart.validate(one, version)
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name, version", GOLDEN)
def test_render_equals_golden(name, version):
    text = chart.helm(*chart.command(version, [chart.VALUES[name]])).stdout
    # A new pair for each render; rules and dashboards are compared with their files elsewhere; the policies are of
    # inject's tests.
    text = re.sub(r"\b(ca\.crt|tls\.crt|tls\.key|caBundle): \S{100,}", r"\1: MADE", text)
    # The servers are those of their file, by a test of their own.
    text = re.sub(r"^    servers:\n.*?^    volumes:", "    servers: FILE\n    volumes:", text, flags=re.M | re.S)
    parts = [one.strip() + "\n" for one in re.split(r"^---\n", text, flags=re.M) if one.strip()]
    kept = [one for one in parts if not re.search(r"Source: \S+/(prometheusrules|dashboards|policy[-\w]*)\.yaml", one)]
    path = chart.HERE / f"golden/{name}-{version}.yaml"
    if UPDATE:
        path.write_text("---\n".join(kept))
    assert path.read_text() == "---\n".join(kept), f"UPDATE_GOLDEN=1 tests/kubernetes/run writes {path.name}"


@pytest.mark.parametrize("name", chart.VALUES)
def test_pods_of_the_chart_are_restricted(name):
    objects = chart.render("1.35", [chart.VALUES[name]])
    for one, spec in chart.pod_specs(objects):
        assert spec["automountServiceAccountToken"] is False, one["metadata"]["name"]
        for container in spec["containers"]:
            restricted(spec, container)


@pytest.mark.parametrize("name", chart.VALUES)
def test_sidecar_is_restricted(name):
    scopes = chart.named(chart.render("1.35", [chart.VALUES[name]]), "Pod")["spec"]["containers"][0]
    restricted({}, scopes)
    assert "cpu" not in scopes["resources"]["limits"], "a CPU limit delays streams"


def restricted(spec, container):
    """Checks the restricted Pod Security Standard."""
    pod, own = spec.get("securityContext", {}), container["securityContext"]
    assert {**pod, **own}["runAsNonRoot"] is True
    assert {**pod, **own}["runAsUser"] == 65532
    assert {**pod, **own}["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["allowPrivilegeEscalation"] is False
    assert own["readOnlyRootFilesystem"] is True
    assert own["capabilities"] == {"drop": ["ALL"]}


def test_chart_grants_no_rights():
    kinds = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    for path in chart.VALUES.values():
        assert not kinds & {one["kind"] for one in chart.render("1.35", [path])}


def test_lint_is_strict_and_clean():
    for path in chart.VALUES.values():
        result = chart.helm("lint", "--strict", chart.CHART, "--values", path)
        assert "[WARNING]" not in result.stdout and "[ERROR]" not in result.stdout, result.stdout


def test_package_has_no_tests_of_rules(tmp_path):
    chart.helm("package", chart.CHART, "--destination", tmp_path)
    listed = chart.helm("show", "readme", next(tmp_path.glob("*.tgz"))).stdout
    assert not listed.strip()
    with tarfile.open(next(tmp_path.glob("*.tgz"))) as package:
        names = package.getnames()
    assert "tokenmeter/rules/alerts.yaml" in names
    assert not [name for name in names if "rules/tests" in name or name.endswith(".md")]
