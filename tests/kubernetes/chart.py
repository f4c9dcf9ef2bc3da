"""The chart, rendered by Helm, and the strict validation of what it renders."""

import functools
import json
import os
import pathlib
import subprocess

import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
CHART = ROOT / "helm/tokenmeter"
HELM = pathlib.Path(os.environ["TOKENMETER_KUBERNETES"]) / "venv/bin/helm"
BINARY = os.environ["TOKENMETER_BIN"]
# The versions that the chart supports, up to the last of which kubernetes-validate has schemas.
VERSIONS = [f"1.{minor}" for minor in range(25, 38)]
# Sets of values, by name: the matrix.
VALUES = {path.stem: path for path in sorted((HERE / "values").glob("*.yaml"))}


def helm(*arguments, check=True, **options):
    """Returns Helm's result."""
    result = subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    assert not check or result.returncode == 0, result.stderr
    return result


def command(version, values=(), sets=(), release="tm", namespace="tm-system", chart=CHART):
    """Returns the arguments of `helm template`."""
    flags = [flag for path in values for flag in ("--values", path)]
    flags += [flag for one in sets for flag in ("--set-json", one)]
    return ["template", release, chart, "--namespace", namespace, "--kube-version", f"{version}.0", *flags]


def render(version, values=(), sets=(), **options):
    """Returns the objects that the chart renders."""
    return documents(helm(*command(version, values, sets, **options)).stdout)


def refused(sets=(), values=(), version="1.31"):
    """Returns Helm's message about values that it rejects."""
    result = helm(*command(version, values, sets), check=False)
    assert result.returncode != 0, f"Helm accepts {sets} {values}"
    return result.stderr


def documents(text):
    """Returns the objects of a YAML text; a key that is written twice is an error."""
    return [one for one in yaml.load_all(text, Loader=Strict) if one]


class Strict(yaml.CSafeLoader):
    """A loader that refuses a key written twice."""


def mapping(loader, node, deep=False):
    """Builds a mapping, and refuses a key written twice."""
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    assert not twice, f"{node.start_mark}: {twice} is written twice"
    return yaml.CSafeLoader.construct_mapping(loader, node, deep)


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


@functools.cache
def own_schemas():
    """Returns the schemas of kinds that Kubernetes does not define, by apiVersion and kind."""
    files = [json.loads(path.read_text()) for path in (HERE / "kinds").glob("*.json")]
    return {(one["properties"]["apiVersion"]["const"], one["properties"]["kind"]["const"]): one for one in files}


def validate(document, version):
    """Raises an error if the object has an unknown field or a wrong type."""
    own = own_schemas().get((document["apiVersion"], document["kind"]))
    if own is not None:
        jsonschema.Draft7Validator(own).validate(document)
        return
    kubernetes_validate.validate(document, version, strict=True)


def pod_specs(documents):
    """Returns the pod specifications of pods and of what makes pods, with their object."""
    for one in documents:
        if one["kind"] == "Pod":
            yield one, one["spec"]
        elif one["kind"] == "CronJob":
            yield one, one["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif one["kind"] in ("Deployment", "StatefulSet"):
            yield one, one["spec"]["template"]["spec"]


def named(documents, kind, name=None):
    """Returns the one object of this kind, and of this name if one is given."""
    found = [one for one in documents if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]
