"""Commands of helm/README.md: Helm renders what they install; kubectl understands what needs no cluster."""

import re
import shlex
import subprocess

import pytest
import yaml

import chart

DOCUMENT = (chart.ROOT / "helm/README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.S)
COMMANDS = [line.strip() for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]


def commands(start):
    """Returns the documented commands that begin with these words."""
    found = [shlex.split(one) for one in COMMANDS if one.startswith(start)]
    assert found, start
    return found


@pytest.mark.parametrize("words", commands("helm install") + commands("helm upgrade"), ids=lambda words: words[-1])
def test_helm_renders_the_documented_values(words):
    kept = ("--create-namespace", "--reuse-values", "--reset-then-reuse-values")
    flags = [word for word in words[4:] if word not in kept]
    needed = ["--set", "ledger.store.url=postgres://tokenmeter_ship@db.example/spend"]
    result = chart.helm("template", words[2], words[3], "--kube-version", "1.31.0", *needed, *flags, cwd=chart.ROOT)
    for one in chart.documents(result.stdout):
        chart.validate(one, "1.31")


def test_report_of_the_page_is_valid(tmp_path):
    block = next(one for one in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.S) if one.startswith("report:"))
    (tmp_path / "values.yaml").write_text(block)
    sets = ['ledger={"store":{"url":"postgres://a@b/c"}}']
    job = chart.named(chart.render("1.31", [tmp_path / "values.yaml"], sets), "CronJob")
    chart.validate(job, "1.31")


def test_patch_adds_the_annotation(tmp_path):
    [words] = commands("kubectl -n chat patch deployment")
    deployment = next(
        one
        for one in chart.documents((chart.ROOT / "examples/kubernetes/vllm.yaml").read_text())
        if one["kind"] == "Deployment"
    )
    (tmp_path / "deployment.yaml").write_text(yaml.safe_dump(deployment))
    patch = words[words.index("--patch") + 1]
    run = ["kubectl", "patch", "--local", "-f", tmp_path / "deployment.yaml", "--patch", patch, "-o", "yaml"]
    patched = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    annotations = yaml.safe_load(patched)["spec"]["template"]["metadata"]["annotations"]
    # The ConfigMap of a release called tokenmeter.
    files = ['files={"namespaces":["chat"],"prices":"version: a"}']
    names = [one["metadata"]["name"] for one in chart.render("1.31", sets=files, release="tokenmeter")]
    assert annotations["config.tokenmeter.io/prices"] in names
    assert annotations["config.tokenmeter.io/usage"] == "continuous"


def test_names_of_the_page_are_the_charts():
    objects = chart.render("1.31", release="tokenmeter", namespace="tokenmeter")
    [secret] = [
        words[-1] for words in map(shlex.split, re.findall(r"`(kubectl -n tokenmeter delete secret [^`]+)`", DOCUMENT))
    ]
    assert chart.named(objects, "Secret")["metadata"]["name"] == secret
