"""The chart's release in the cluster, and the webhook of its Deployment as a process of this machine."""

import base64
import contextlib
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import time

import chart
from process import eventually

NAME, NAMESPACE = "tokenmeter", "tm-system"
# What the chart uses of Kubernetes 1.21, under its name of 1.20.
OLDER = r"s#^apiVersion: policy/v1$#apiVersion: policy/v1beta1#; s#^apiVersion: batch/v1$#apiVersion: batch/v1beta1#"
NAMESPACES = "/api/v1/namespaces"


class Release:
    """The release: installed, upgraded and removed by Helm."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        # The chart itself is installed from 1.25 on; nothing else is changed.
        self.chart = folder / "chart"
        shutil.copytree(chart.CHART, self.chart)
        text = (self.chart / "Chart.yaml").read_text()
        assert 'kubeVersion: ">=1.25.0-0"' in text
        (self.chart / "Chart.yaml").write_text(text.replace(">=1.25.0-0", ">=1.20.0-0"))

    def helm(self, *words, check=True):
        """Runs Helm with the cluster."""
        return chart.helm(*words, "--namespace", NAMESPACE, check=check, env=self.cluster.environment())

    def apply(self, verb, name=NAME, values=(), sets=(), check=True):
        """Installs or upgrades the release."""
        flags = [flag for path in values for flag in ("--values", path)]
        flags += [flag for one in sets for flag in ("--set-json", one)]
        flags += ["--post-renderer", "sed", "--post-renderer-args", OLDER]
        return self.helm(verb, name, self.chart, *flags, check=check)

    def object(self, kind, name):
        """Returns an object of the release's namespace."""
        return self.cluster.ask("GET", f"{NAMESPACES}/{NAMESPACE}/{kind}/{name}")

    def deployment(self):
        """Returns the webhook's Deployment, as the server keeps it."""
        return self.cluster.ask("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}-webhook")

    def configuration(self):
        """Returns the webhook's registration."""
        return self.cluster.ask("GET", f"{HOOKS}/{NAME}")


HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Webhook:
    """The container of the webhook's Deployment, as a process without a token. Its volumes are folders, which sync()
    fills as the kubelet does."""

    def __init__(self, release, folder):
        self.release, self.folder = release, folder
        self.process = None
        self.log = folder / "webhook.log"
        spec = release.deployment()["spec"]["template"]["spec"]
        [self.container] = spec["containers"]
        self.sources = {one["name"]: one for one in spec["volumes"]}
        self.mounts = {one["mountPath"]: folder / one["name"] for one in self.container["volumeMounts"]}
        self.ports = {one["name"]: one["containerPort"] for one in self.container["ports"]}
        for path in self.mounts.values():
            path.mkdir()
        self.sync()
        self.route()

    def route(self):
        """Leads the Service to the process."""
        self.release.cluster.route(self.release.object("services", f"{NAME}-webhook"), self.ports)

    def sync(self):
        """Brings the volumes up to date: new files in a new folder, to which one link then leads."""
        for mount in self.container["volumeMounts"]:
            source, folder = self.sources[mount["name"]], self.mounts[mount["mountPath"]]
            if "secret" in source:
                data = self.release.object("secrets", source["secret"]["secretName"])["data"]
                files = {name: base64.b64decode(text) for name, text in data.items()}
            else:
                data = self.release.object("configmaps", source["configMap"]["name"])["data"]
                files = {name: text.encode() for name, text in data.items()}
            new = folder / f"..{time.time_ns()}"
            new.mkdir()
            for name, content in files.items():
                (new / name).write_bytes(content)
                if not (folder / name).is_symlink():
                    (folder / name).symlink_to(pathlib.Path("..data") / name)
            (folder / "..new").symlink_to(new.name)
            (folder / "..new").replace(folder / "..data")

    def start(self):
        """Starts the process with the Deployment's words, and waits until it is ready."""
        words = [*self.container["command"], *self.container["args"]]
        assert words[0] == "/usr/bin/tokenmeter"
        for path, own in self.mounts.items():
            words = [word.replace(path + "/", f"{own}/") for word in words]
        out = self.log.open("ab")
        # No environment, no token, no kubeconfig: it needs nothing of the API server.
        self.process = subprocess.Popen([chart.BINARY, *words[1:]], env={}, stdout=out, stderr=out)
        assert eventually(self.is_ready, 60), self.log.read_text()

    def is_ready(self):
        """Returns whether the readiness probe succeeds."""
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            return probe(self.ports["https"], self.container["readinessProbe"]["httpGet"]["path"]) == 200

    def stop(self):
        """Ends the process as the kubelet does after the Service's endpoint is gone."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                assert self.process.wait(60) == 0, self.log.read_text()
            finally:
                self.process.kill()

    def kill(self):
        """Ends the process at once."""
        self.process.kill()
        self.process.wait()

    def outcomes(self, pod):
        """Returns the outcomes that the log has for a pod, in order."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["outcome"] for line in lines if line.get("pod") == pod]


def probe(port, path):
    """Returns the status of a probe; the kubelet verifies no certificate."""
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    connection.request("GET", path)
    return connection.getresponse().status
