"""Values: each is documented and in the schema, and wrong ones are rejected."""

import json
import re

import pytest
import yaml

import chart

SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
TEXT = (chart.CHART / "values.yaml").read_text()
CONFIGURATION = (chart.ROOT / "sidecar/tokenmeter/configuration.md").read_text()
SETTINGS = set(re.findall(r"^\| `([a-z_]+)`<br>", CONFIGURATION, re.M))
# Settings that the chart or the pod decides.
NOT_VALUES = {
    "upstream", "listen", "kind", "role", "tenants", "prices",
    # The proxy only checks these: reports read them, which run elsewhere.
    "attributes", "focus_billing",
    "ledger", "ledger_spool", "ledger_ship", "ledger_ship_password_file", "ledger_keep_days",
    "admin_token_file", "drain_delay_ms", "drain_grace_ms", "drain_token_file", "transparent",
    # The upstream is http://127.0.0.1:PORT: tokenmeter rejects these settings there.
    "upstream_ca", "upstream_cert", "upstream_key", "upstream_server_name", "upstream_insecure_skip_verify",
    "upstream_proxy",
    # The pod has no port for a second listener and no volume with a certificate; `listen` is no Unix socket.
    "listen_tls", "tls_cert", "tls_key", "tls_client_ca", "listen_mode",
    "admin_tls", "admin_tls_cert", "admin_tls_key", "admin_tls_client_ca",
    # Probes that reach the server through the sidecar begin without a header: no pod would become ready.
    "proxy_protocol",
}  # fmt: skip


def closed(schema, path=""):
    """Returns the paths of the schema's properties; of a reference, those of its definition."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    for name, one in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from closed(one, f"{path}{name}.")


def written(values, path=""):
    """Returns the paths of the default values."""
    for name, value in values.items():
        yield f"{path}{name}"
        if isinstance(value, dict):
            yield from written(value, f"{path}{name}.")


# The children of these are Kubernetes' own or free.
OWN_SHAPE = re.compile(r"^(.*\.)?(resources|securityContext|settings|issuerRef|redirect)\..*|^global$")


def test_schema_and_values_have_the_same_names():
    of_schema = {path for path in closed(SCHEMA) if not OWN_SHAPE.match(path)}
    of_values = {path for path in written(yaml.safe_load(TEXT)) if not OWN_SHAPE.match(path)}
    assert of_schema == of_values


def test_every_object_of_the_schema_is_closed():
    free = set()

    def walk(schema, path):
        if schema.get("type") == "object" and "properties" in schema:
            assert schema.get("additionalProperties") is False, path
        elif schema.get("type") == "object" and "additionalProperties" not in schema:
            free.add(path)
        for name, one in schema.get("properties", {}).items():
            walk(one, f"{path}.{name}")

    walk(SCHEMA, "")
    # Objects of Kubernetes, which the API server checks.
    assert free == {".global", ".sidecar.securityContext", ".webhook.affinity", ".report.volume"}


def test_every_value_has_a_comment():
    lines = TEXT.splitlines()
    missing = []
    for number, line in enumerate(lines):
        key = re.match(r"^( *)([A-Za-z]+):", line)
        if not key or re.match(
            r"^ *(requests|limits|run\w+|allowPrivilege\w+|readOnly\w+|capabilities|seccomp\w+):", line
        ):
            continue
        if not lines[number - 1].lstrip().startswith("#"):
            missing.append(line)
    assert not missing


def test_settings_are_those_of_the_configuration_page():
    assert len(SETTINGS) > 50
    of_schema = set(SCHEMA["properties"]["sidecar"]["properties"]["settings"]["properties"])
    assert of_schema == SETTINGS - NOT_VALUES


@pytest.mark.parametrize("name", chart.VALUES)
def test_variables_of_the_sidecar_exist(name):
    container = chart.named(chart.render("1.35", [chart.VALUES[name]]), "Pod")["spec"]["containers"][0]
    names = [one["name"] for one in container["env"]]
    assert len(set(names)) == len(names)
    known = set(re.findall(r"`(TOKENMETER_[A-Z_]+)`", CONFIGURATION))
    otlp = set(re.findall(r"`([A-Z0-9_]+)`", (chart.ROOT / "sidecar/otlp/otlp.md").read_text()))
    assert not set(names) - known - otlp - {"PGPASSWORD"}


@pytest.mark.parametrize(
    "sets, message",
    [
        (['sidecar={"setings":{}}'], "setings"),
        (['sidecar={"settings":{"stal_ms":1}}'], "stal_ms"),
        (['sidecar={"settings":{"ledger":"x.db"}}'], "ledger"),
        (['sidecar={"settings":{"admin":null}}'], "admin"),
        (['sidecar={"native":"yes"}'], "native"),
        (['sidecar={"serverPort":80}'], "serverPort"),
        (['sidecar={"serverPort":"8200"}'], "serverPort"),
        (['sidecar={"drain":{"graceSeconds":-1}}'], "graceSeconds"),
        (['sidecar={"resources":{"limits":{"memory":"many"}}}'], "memory"),
        (['image={"repository":"tokenmeter:1"}'], "repository"),
        (['image={"digest":"sha256:1"}'], "digest"),
        (['ledger={"store":{"url":"postgres://me:secret@db/spend"}}'], "url"),
        (['ledger={"store":{"url":"mysql://me@db/spend"}}'], "url"),
        (['injection={"mode":"sidecar"}'], "mode"),
        (['injection={"excludedNamespaces":["Chat"]}'], "excludedNamespaces"),
        (['webhook={"certificate":{"mode":"letsencrypt"}}'], "mode"),
        (['webhook={"timeoutSeconds":31}'], "timeoutSeconds"),
        (['monitoring={"currency":"EUR"}'], "currency"),
        (['networkPolicy={"publicPorts":[0]}'], "publicPorts"),
        (['report={"schedule":"monthly"}'], "schedule"),
        (['retention={"schedule":"monthly"}'], "schedule"),
        (['retention={"keepDays":-1}'], "keepDays"),
        (['retention={"user":"a:b"}'], "user"),
        (["surplus=1"], "surplus"),
    ],
)
def test_wrong_values_are_rejected(sets, message):
    assert message in chart.refused(sets)


@pytest.mark.parametrize(
    "sets, version, message",
    [
        (['injection={"mode":"policy"}'], "1.35", "needs Kubernetes 1.36"),
        (['sidecar={"native":true}'], "1.28", "needs Kubernetes 1.29"),
        (['report={"enabled":true}'], "1.31", "report.enabled needs ledger.store.url"),
        (['retention={"enabled":true}'], "1.31", "retention.enabled needs ledger.store.url"),
        (['networkPolicy={"enabled":true}'], "1.31", "needs networkPolicy.namespaces"),
        (['networkPolicy={"enabled":true,"namespaces":["a"],"publicPorts":[8200]}'], "1.31", "sidecar.serverPort"),
        (['webhook={"certificate":{"mode":"existing"}}'], "1.31", "needs webhook.certificate.secretName"),
        ([], "1.24", "kubeVersion"),
    ],
)
def test_impossible_combinations_say_why(sets, version, message):
    assert message in chart.refused(sets, version=version)
