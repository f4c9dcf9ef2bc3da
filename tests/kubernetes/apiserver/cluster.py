"""A real kube-apiserver with etcd, and what else of a cluster the tests need: the routes of Services, and the service
accounts that a controller would make. No pod runs: there is no kubelet, no scheduler and no controller."""

import http.client
import json
import os
import pathlib
import ssl
import subprocess

from process import Process

PROGRAMS = pathlib.Path(os.environ["TOKENMETER_APISERVER"])
SERVICES = "10.96.0.0/24"
ADDRESS = "10.0.0.1"
ADMIN = "admin-of-the-tests"


def run(*words, **options):
    """Runs a program and returns its output; its failure is an error with its message."""
    words = [str(word) for word in words]
    result = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{' '.join(words)}: {result.stderr}"
    return result.stdout


class Cluster:
    """The API server, with RBAC, and its etcd."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        run("ip", "link", "set", "lo", "up")
        # Each address of a Service is one of this machine, and the server has one that is not loopback.
        run("ip", "route", "add", "local", SERVICES, "dev", "lo")
        run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
        run("nft", "add", "table", "ip", "services")
        run("nft", "add", "chain", "ip", "services", "output", "{ type nat hook output priority -100; }")

    def start(self):
        """Starts both, and waits until the server is ready."""
        folder = self.folder
        etcd = [PROGRAMS / "etcd", f"--data-dir={folder}/etcd", "--unsafe-no-fsync"]
        self.processes.append(Process(etcd, folder / "etcd.log"))
        key = folder / "service-accounts.key"
        run("openssl", "genrsa", "-out", key, "2048")
        (folder / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n")
        words = [
            PROGRAMS / "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={ADDRESS}",
            f"--cert-dir={folder}",
            f"--service-cluster-ip-range={SERVICES}",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            f"--token-auth-file={folder}/tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            # The default since 1.21: tokens in projected volumes, which need no controller.
            "--feature-gates=BoundServiceAccountTokenVolume=true",
        ]
        server = Process(words, folder / "apiserver.log")
        self.processes.append(server)
        certificate = folder / "apiserver.crt"
        server.wait_until(lambda: certificate.exists() and self.call("GET", "/readyz")[0] == 200, 120)
        (folder / "kubeconfig").write_text(json.dumps(self.kubeconfig(certificate)))

    def kubeconfig(self, certificate):
        """Returns the configuration of kubectl and Helm."""
        cluster = {"server": f"https://{ADDRESS}:6443", "certificate-authority": str(certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": ADMIN}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "current-context": "tests",
        }

    def stop(self):
        """Ends both."""
        for process in reversed(self.processes):
            process.stop()

    def environment(self):
        """Returns the environment of kubectl and Helm: nothing of the machine's own configuration."""
        own = {"HOME": str(self.folder), "KUBECONFIG": str(self.folder / "kubeconfig")}
        return {"PATH": os.environ["PATH"], **own}

    def kubectl(self, *words, **options):
        """Runs kubectl and returns its output."""
        return run("kubectl", *words, env=self.environment(), **options)

    def call(self, method, path, body=None, token=ADMIN, timeout=60, **headers):
        """Sends one request, and returns the status and the object; warnings are in its key `warnings`."""
        context = ssl.create_default_context(cafile=self.folder / "apiserver.crt")
        connection = http.client.HTTPSConnection(ADDRESS, 6443, context=context, timeout=timeout)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}", **headers}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        try:
            content = json.loads(text)
        except ValueError:
            content = {"text": text.decode(errors="replace")}
        warnings = answer.headers.get_all("warning")
        return answer.status, {**content, "warnings": warnings} if warnings else content

    def ask(self, method, path, body=None, **options):
        """Sends one request that must succeed, and returns the object."""
        status, content = self.call(method, path, body, **options)
        assert status < 300, f"{method} {path}: {status}: {content.get('message', content)}"
        return content

    def namespace(self, name, **labels):
        """Creates a namespace, with what a server of 1.21 and its controllers would add."""
        # Since 1.21 the server itself sets this label, by which the chart excludes namespaces.
        labels = {"kubernetes.io/metadata.name": name, **labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        if self.call("POST", "/api/v1/namespaces", namespace)[0] == 409:
            patch = {"metadata": {"labels": labels}}
            merge = "application/merge-patch+json"
            self.ask("PATCH", f"/api/v1/namespaces/{name}", patch, content_type=merge)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
        return name

    def create(self, namespace, pod, dry=False, **options):
        """Creates a pod, or only reviews it, and returns the status and the pod."""
        return self.call("POST", f"/api/v1/namespaces/{namespace}/pods{'?dryRun=All' if dry else ''}", pod, **options)

    def route(self, service, ports):
        """Sends connections of the Service to the ports of its pods on this machine, as kube-proxy does."""
        run("nft", "flush", "chain", "ip", "services", "output")
        spec = service["spec"]
        for port in spec["ports"]:
            target = ports.get(port["targetPort"], port["targetPort"])
            rule = f"ip daddr {spec['clusterIP']} tcp dport {port['port']} dnat to 127.0.0.1:{target}"
            run("nft", "add", "rule", "ip", "services", "output", *rule.split())
