"""What the chart's objects do: injection, selectors, ports, monitoring, report."""

import base64
import re
import shutil
import subprocess

import pytest
import yaml

import chart

EVERYTHING = [chart.VALUES["everything"]]


def config(objects):
    """Returns the injection's configuration."""
    maps = [one for one in objects if one["kind"] == "ConfigMap" and "injection.yaml" in one["data"]]
    assert len(maps) == 1
    return yaml.safe_load(maps[0]["data"]["injection.yaml"])


@pytest.mark.parametrize("version, mode", [("1.25", "webhook"), ("1.35", "webhook"), ("1.36", "policy")])
def test_mode_follows_the_version(version, mode):
    kinds = [one["kind"] for one in chart.render(version)]
    assert ("MutatingWebhookConfiguration" in kinds) == (mode == "webhook")
    assert ("Deployment" in kinds) == (mode == "webhook")


def test_mode_none_renders_no_injection():
    assert {one["kind"] for one in chart.render("1.31", sets=['injection={"mode":"none"}'])} == {"Pod"}


def test_configuration_is_the_sidecar():
    objects = chart.render("1.31", EVERYTHING)
    settings, test = config(objects), chart.named(objects, "Pod")["spec"]
    numbers = {"server_port", "grace_seconds", "delay_seconds"}
    assert set(settings) == {"container", "volumes", "native", "address", *numbers, "redirect", "platforms", "servers"}
    assert settings["servers"] == yaml.safe_load((chart.CHART / "files/servers.yaml").read_text())
    assert settings["native"] is True and settings["container"]["restartPolicy"] == "Always"
    # The test runs what the injection injects.
    assert test["containers"][0]["env"][:-1] == settings["container"]["env"]
    assert test["containers"][0]["image"] == settings["container"]["image"]
    assert test["volumes"] == settings["volumes"]
    assert settings["redirect"]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}


def test_container_below_native_sidecars_is_plain():
    settings = config(chart.render("1.28"))
    assert settings["native"] is False and "restartPolicy" not in settings["container"]


def test_start_and_life_never_wait_for_the_model():
    container = config(chart.render("1.31"))["container"]
    assert container["startupProbe"]["httpGet"]["path"] == container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_image_is_tag_or_digest():
    assert config(chart.render("1.31"))["container"]["image"] == "tokenmeter:0.1.0"
    assert config(chart.render("1.31", EVERYTHING))["container"]["image"].endswith("/tokenmeter@sha256:" + "0" * 64)


def matches(expression, labels):
    """Evaluates an expression of a label selector."""
    value = labels.get(expression["key"])
    return (value in expression["values"]) == (expression["operator"] == "In")


@pytest.mark.parametrize(
    "namespace, pod, injected",
    [
        ({"tokenmeter.io/injection": "enabled"}, {}, True),
        ({"tokenmeter.io/injection": "enabled"}, {"tokenmeter.io/inject": "true"}, True),
        ({"tokenmeter.io/injection": "enabled"}, {"tokenmeter.io/inject": "false"}, False),
        ({}, {"tokenmeter.io/inject": "true"}, True),
        ({}, {"tokenmeter.io/inject": "false"}, False),
        ({}, {}, False),
        ({"tokenmeter.io/injection": "disabled"}, {"tokenmeter.io/inject": "true"}, False),
        ({"tokenmeter.io/injection": "enabled", "kubernetes.io/metadata.name": "kube-system"}, {}, False),
        ({"tokenmeter.io/injection": "enabled", "kubernetes.io/metadata.name": "tm-system"}, {}, False),
        ({"tokenmeter.io/injection": "enabled", "kubernetes.io/metadata.name": "monitoring"}, {}, False),
    ],
)
def test_webhook_selects_who_opted_in(namespace, pod, injected):
    hooks = chart.named(chart.render("1.31", EVERYTHING), "MutatingWebhookConfiguration")["webhooks"]
    called = [
        one["name"]
        for one in hooks
        if all(matches(each, namespace) for each in one["namespaceSelector"]["matchExpressions"])
        and all(matches(each, pod) for each in one["objectSelector"]["matchExpressions"])
    ]
    # At most one of the two entries, so that a pod is reviewed once.
    assert len(called) == int(injected)


def test_webhook_never_keeps_a_pod_from_starting():
    for one in chart.named(chart.render("1.31"), "MutatingWebhookConfiguration")["webhooks"]:
        assert one["failurePolicy"] == "Ignore" and one["timeoutSeconds"] == 5
        assert one["reinvocationPolicy"] == "IfNeeded" and one["sideEffects"] == "None"


def test_webhook_answers_until_its_endpoint_is_removed():
    def hook(version):
        return chart.named(chart.render(version), "Deployment")["spec"]["template"]["spec"]["containers"][0].get(
            "lifecycle"
        )

    # The action exists from 1.30 on; the image has no shell that could sleep.
    assert hook("1.29") is None and hook("1.30") == {"preStop": {"sleep": {"seconds": 5}}}


def test_self_signed_certificate_is_of_the_service(tmp_path):
    objects = chart.render("1.31")
    secret = chart.named(objects, "Secret")["data"]
    service = chart.named(objects, "Service")["metadata"]["name"]
    hooks = chart.named(objects, "MutatingWebhookConfiguration")["webhooks"]
    assert {one["clientConfig"]["caBundle"] for one in hooks} == {secret["ca.crt"]}
    for name in ("ca.crt", "tls.crt"):
        (tmp_path / name).write_bytes(base64.b64decode(secret[name]))
    host = f"{service}.tm-system.svc"
    verify = ["openssl", "verify", "-CAfile", tmp_path / "ca.crt", "-verify_hostname", host, tmp_path / "tls.crt"]
    subprocess.run(verify, check=True, capture_output=True)


def test_certificate_of_cert_manager_is_injected():
    objects = chart.render("1.31", [chart.VALUES["own-issuer"]])
    certificate = chart.named(objects, "Certificate")
    hook = chart.named(objects, "MutatingWebhookConfiguration")
    mounted = chart.named(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert certificate["spec"]["issuerRef"]["name"] == chart.named(objects, "Issuer")["metadata"]["name"]
    assert (
        hook["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        == f"tm-system/{certificate['metadata']['name']}"
    )
    assert {
        "name": "certificate",
        "secret": {"secretName": certificate["spec"]["secretName"], "defaultMode": 0o440},
    } in mounted
    assert not [one for one in objects if one["kind"] == "Secret"]


def covers(rule, port):
    """Returns true if a port is in a rule of a network policy."""
    tcp = [one for one in rule["ports"] if one["protocol"] == "TCP"]
    return any(one["port"] <= port <= one.get("endPort", one["port"]) for one in tcp)


def test_network_policy_closes_the_server_port_only():
    [policy] = [
        one for one in chart.render("1.31", [chart.VALUES["existing-certificate"]]) if one["kind"] == "NetworkPolicy"
    ]
    public, admin = policy["spec"]["ingress"]
    closed = [port for port in range(1, 65536) if not covers(public, port)]
    assert closed == [8200, 9464]
    assert covers(admin, 9464) and not covers(admin, 8200)
    assert policy["spec"]["podSelector"]["matchLabels"] == {"tokenmeter.io/injected": "true"}


def test_ipv6_is_for_all_listeners():
    sets = ['sidecar={"settings":{"admin":"[::]:9464"}}', 'image={"repository":"registry.example/tokenmeter"}']
    objects = chart.render("1.31", sets=sets)
    assert config(objects)["address"] == "[::]"
    [webhook] = chart.named(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--listen=[::]:8443" in webhook["args"]
    policy = chart.named(chart.render("1.36", sets=sets), "MutatingAdmissionPolicy")
    [env] = [one["expression"] for one in policy["spec"]["variables"] if one["name"] == "podEnv"]
    assert '"[::]:" + string(variables.public)' in env


@pytest.mark.parametrize("server, admin", [(9463, 9464), (9465, 9464), (9464, 9465)])
def test_network_policy_has_no_empty_range(server, admin):
    sets = [
        'networkPolicy={"enabled":true,"namespaces":["a"]}',
        f'sidecar={{"serverPort":{server},"settings":{{"admin":"0.0.0.0:{admin}"}}}}',
    ]
    policy = chart.named(chart.render("1.31", sets=sets), "NetworkPolicy")
    chart.validate(policy, "1.31")
    for one in policy["spec"]["ingress"][0]["ports"]:
        assert one["port"] <= one["endPort"]
    closed = [port for port in range(1, 65536) if not covers(policy["spec"]["ingress"][0], port)]
    assert closed == sorted([server, admin])


def test_network_policy_is_as_set():
    policies = [one for one in chart.render("1.31", EVERYTHING) if one["kind"] == "NetworkPolicy"]
    assert [one["metadata"]["namespace"] for one in policies] == ["chat", "code"]
    public, admin = policies[0]["spec"]["ingress"]
    assert [port for port in range(1, 65536) if covers(public, port)] == [8000]
    assert public["from"] == [{"podSelector": {"matchLabels": {"app": "gateway"}}}]
    assert admin["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}


def rule_files():
    return sorted((chart.CHART / "rules").glob("*.yaml"))


def test_prometheus_rules_equal_their_files():
    values = [
        one
        for one in chart.render("1.31", sets=['monitoring={"rules":{"enabled":true}}'])
        if one["kind"] == "PrometheusRule"
    ]
    rendered = {one["metadata"]["name"]: one["spec"] for one in values}
    assert rendered == {f"tm-tokenmeter-{path.stem}": yaml.safe_load(path.read_text()) for path in rule_files()}


def test_dashboards_equal_their_files():
    maps = [
        one
        for one in chart.render("1.31", sets=['monitoring={"dashboards":{"enabled":true}}'])
        if one["kind"] == "ConfigMap"
    ]
    maps = [one for one in maps if one["metadata"]["labels"].get("grafana_dashboard") == "1"]
    rendered = {name: text.strip() for one in maps for name, text in one["data"].items()}
    files = sorted((chart.CHART / "dashboards").glob("*.json"))
    assert rendered == {f"tokenmeter-{path.name}": path.read_text().strip() for path in files}
    # A ConfigMap holds 1 MiB.
    assert all(len(text) < 1_000_000 for text in rendered.values())


def test_currency_changes_as_the_documented_command_does():
    document = (chart.CHART / "rules/README.md").read_text()
    script = re.search(r"sed -E -i '(.*)'", document).group(1)
    objects = chart.render("1.31", EVERYTHING)
    rendered = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "PrometheusRule"}
    for path in rule_files():
        text = subprocess.run(["sed", "-E", script, path], check=True, capture_output=True, text=True).stdout
        assert rendered[f"tm-meter-{path.stem}"] == yaml.safe_load(text)
    [board] = [
        one["data"]["tokenmeter-tenants-and-spend.json"]
        for one in objects
        if "tenants-and-spend" in one["metadata"]["name"]
    ]
    assert (
        "budget_used_eur" in board and "budget_used_usd" not in board and "tokenmeter_tenant_spend_eur_total" in board
    )


def test_job_label_is_namespace_and_name():
    monitor = chart.named(chart.render("1.31", sets=['monitoring={"podMonitor":{"enabled":true}}']), "PodMonitor")[
        "spec"
    ]
    assert monitor["selector"]["matchLabels"] == {"tokenmeter.io/injected": "true"}
    [endpoint] = monitor["podMetricsEndpoints"]
    [relabeling] = endpoint["relabelings"]
    assert relabeling["sourceLabels"][1] == "__meta_kubernetes_pod_label_app_kubernetes_io_name"
    # Without the label the value is "chat/", and the job stays the PodMonitor's.
    assert re.fullmatch(relabeling["regex"], "chat/vllm") and not re.fullmatch(relabeling["regex"], "chat/")
    assert endpoint["port"] in [one["name"] for one in config(chart.render("1.31"))["container"]["ports"]]


def test_admin_token_is_mounted_and_sent():
    objects = chart.render("1.31", EVERYTHING, sets=['injection={"mode":"webhook"}'])
    injection = config(objects)
    env = {one["name"]: one.get("value") for one in injection["container"]["env"]}
    folder, _, file = env["TOKENMETER_ADMIN_TOKEN_FILE"].rpartition("/")
    [mount] = [one for one in injection["container"]["volumeMounts"] if one["mountPath"] == folder]
    [volume] = [one for one in injection["volumes"] if one["name"] == mount["name"]]
    assert mount["readOnly"] and volume["secret"]["optional"], "a pod without the Secret starts"
    assert volume["secret"]["items"] == [{"key": "token", "path": file}]
    [endpoint] = chart.named(objects, "PodMonitor")["spec"]["podMetricsEndpoints"]
    credentials = endpoint["authorization"]["credentials"]
    assert credentials == {"name": volume["secret"]["secretName"], "key": "token"}
    [plain] = chart.named(chart.render("1.31", sets=['monitoring={"podMonitor":{"enabled":true}}']), "PodMonitor")[
        "spec"
    ]["podMetricsEndpoints"]
    assert "authorization" not in plain


STORE_JOBS = {
    "report": ("tokenmeter_read", "tokenmeter-read"),
    "retention": ("tokenmeter", "tokenmeter-owner"),
}


def store_job(objects, component):
    """The container of the CronJob with this component."""
    [job] = [one for one in objects if one["kind"] == "CronJob" and one["metadata"]["name"].endswith(f"-{component}")]
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("component", STORE_JOBS)
def test_store_jobs_have_roles_of_their_own(component):
    role, secret = STORE_JOBS[component]
    env = {one["name"]: one for one in store_job(chart.render("1.31", EVERYTHING), component)["env"]}
    assert env["TOKENMETER_LEDGER"]["value"] == f"postgres://{role}@db.example/spend"
    assert env["PGPASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == secret


@pytest.mark.parametrize("component", STORE_JOBS)
def test_commands_of_store_jobs_exist(component):
    url = "postgres://a@127.0.0.1:1/b?sslmode=disable"
    values = [f'{component}={{"enabled":true}}', f'ledger={{"store":{{"url":"{url}"}}}}']
    container = store_job(chart.render("1.31", sets=values), component)
    env = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    run = [chart.BINARY, *container["command"][1:], *container["args"]]
    result = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
    # It understands the command, and there is no store.
    assert result.returncode == 1 and "127.0.0.1" in result.stderr, result.stderr


@pytest.mark.parametrize("name", chart.VALUES)
def test_binary_accepts_the_settings(name, tmp_path):
    container = chart.named(chart.render("1.35", [chart.VALUES[name]]), "Pod")["spec"]["containers"][0]
    values = {one["name"]: one.get("value", "made") for one in container["env"]}
    env = {name: text.replace("/var/lib/tokenmeter", str(tmp_path)) for name, text in values.items()}
    run = [chart.BINARY, *container["command"][1:]]
    result = subprocess.run(run, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "no setting" not in result.stderr, result.stderr


def test_notes_say_the_next_step(tmp_path):
    # Helm prints notes only with a cluster, so a copy of the chart has them in a ConfigMap.
    copy = tmp_path / "tokenmeter"
    shutil.copytree(chart.CHART, copy)
    text = (copy / "templates/NOTES.txt").read_text()
    (copy / "templates/_notes.tpl").write_text('{{- define "notes" -}}' + text + "{{- end -}}")
    template = (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {text: {{ include "notes" . | toJson }}}\n'
    )
    (copy / "templates/notes.yaml").write_text(template)

    def notes(*sets):
        return chart.named(chart.render("1.31", sets=sets, chart=copy), "ConfigMap", "notes")["data"]["text"]

    assert "kubectl label namespace NAMESPACE tokenmeter.io/injection=enabled" in notes()
    assert "injection: webhook" in notes() and "WARNING: ledger.store.url is empty" in notes()
    assert "WARNING: image.repository is not set" in notes()
    store, image = 'ledger={"store":{"url":"postgres://a@b/c"}}', 'image={"repository":"registry.example/tokenmeter"}'
    assert "WARNING" not in notes(store, image)
    assert "kubectl label" not in notes('injection={"mode":"none"}')
    assert "podMonitorSelector" in notes('monitoring={"podMonitor":{"enabled":true}}')
