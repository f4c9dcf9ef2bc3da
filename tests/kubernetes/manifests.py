"""The manifests in helm/ that are made of the chart: the Kustomize patch and KServe's configuration."""

import yaml

import chart

PUBLIC, SERVER = 8000, 8200
KUSTOMIZE = chart.ROOT / "helm/kustomize/sidecar.yaml"
KSERVE = chart.ROOT / "helm/kserve/tokenmeter.yaml"
MADE = "# Made of the chart's default values: UPDATE_GOLDEN=1 tests/kubernetes/run writes it.\n"
KSERVE_HEAD = """# KServe: metering for every LLMInferenceService that names it in baseRefs. Replace the image by
# yours, and apply the file in the service's namespace or in KServe's.
# The sidecar listens on 8000 and vLLM on 8200: KServe's presets pass VLLM_ADDITIONAL_ARGS to vLLM, which uses the last
# of two --port. A service that sets this variable itself must repeat --port 8200.
# TLS between the scheduler and the pods must be off (enableLLMInferenceServiceTLS: false): tokenmeter serves plain
# HTTP. The preset's own preStop hook stays: streams that outlast it and vLLM's own drain end with the server.
"""


class Plain(yaml.SafeDumper):
    """A dumper without anchors."""

    def ignore_aliases(self, data):
        return True


def dump(document):
    """Returns the document as YAML."""
    return yaml.dump(document, Dumper=Plain, sort_keys=False, width=110)


def injection():
    """Returns the injection's configuration with default values, for native sidecars."""
    [text] = [
        one["data"]["injection.yaml"]
        for one in chart.render("1.31")
        if one["kind"] == "ConfigMap" and "injection.yaml" in one["data"]
    ]
    return yaml.safe_load(text)


def sidecar(config):
    """Returns the complete container, with the addresses of a server on SERVER."""
    own = config["container"]
    env = own["env"] + [
        {"name": "TOKENMETER_LISTEN", "value": f"0.0.0.0:{PUBLIC}"},
        {"name": "TOKENMETER_UPSTREAM", "value": f"http://127.0.0.1:{SERVER}"},
    ]
    ports = own["ports"] + [{"name": "tm-http", "containerPort": PUBLIC, "protocol": "TCP"}]
    return {**own, "env": env, "ports": ports}


def kustomize():
    """Returns the text of the strategic merge patch."""
    config = injection()
    pod = {
        "terminationGracePeriodSeconds": config["delay_seconds"] + config["grace_seconds"] + 30,
        "initContainers": [sidecar(config)],
        "volumes": config["volumes"],
    }
    template = {"metadata": {"labels": {"tokenmeter.io/injected": "true"}}, "spec": pod}
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"}, "spec": {"template": template}}
    return MADE + dump(patch)


def kserve():
    """Returns the text of the LLMInferenceServiceConfig."""
    config = injection()
    probe = {"httpGet": {"path": "/health", "port": SERVER}}
    main = {
        "name": "main",
        "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": f"--port {SERVER}"}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "startupProbe": probe,
    }
    pod = {
        "terminationGracePeriodSeconds": config["delay_seconds"] + config["grace_seconds"] + 30,
        "initContainers": [sidecar(config)],
        "containers": [main],
        "volumes": config["volumes"],
    }
    document = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": "tokenmeter"},
        "spec": {"labels": {"tokenmeter.io/injected": "true"}, "template": pod},
    }
    return KSERVE_HEAD + MADE + dump(document)
