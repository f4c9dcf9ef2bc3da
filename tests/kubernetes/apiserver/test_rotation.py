"""The files of the webhook, its certificate and its configuration, over upgrades of the release and over a renewal."""

import base64
import itertools
import ssl
import threading

import pods
from process import eventually
from release import NAME, NAMESPACE

SECRET = f"{NAME}-webhook-tls"


class Creations:
    """A thread that creates pods until it is stopped."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.failed, self.unmetered, self.number = [], [], 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        for number in itertools.count():
            if self.stopping.is_set():
                return
            status, created = self.cluster.create(self.namespace, pods.vllm(f"pod-{number}"))
            self.number = number + 1
            if status != 201:
                self.failed.append(created)
            elif not pods.is_metered(created):
                self.unmetered.append(created["metadata"]["name"])

    def more(self):
        """Waits until twenty further pods are created."""
        until = self.number + 20
        assert eventually(lambda: self.number >= until, 120), "the thread creates pods"

    def __enter__(self):
        self.thread.start()
        self.more()
        return self

    def __exit__(self, *error):
        self.stopping.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def bundles(release):
    """Returns the CA's certificates of the registration: one set, the same for each of its entries."""
    [bundle] = {one["clientConfig"]["caBundle"] for one in release.configuration()["webhooks"]}
    return base64.b64decode(bundle).decode().count("BEGIN CERTIFICATE"), bundle


def test_upgrade_keeps_the_certificate(webhook, release):
    before, bundle = release.object("secrets", SECRET)["data"], bundles(release)
    release.apply("upgrade", sets=['webhook={"replicas":3}'])
    assert release.deployment()["spec"]["replicas"] == 3
    assert release.object("secrets", SECRET)["data"] == before
    assert bundles(release) == bundle
    assert base64.b64decode(bundle[1]) == base64.b64decode(before["ca.crt"])


def test_changed_values_reach_new_pods(webhook, release, cluster, namespace):
    def upstream():
        _, created = cluster.create(namespace, pods.vllm("trial"), dry=True)
        [own] = pods.sidecars(created)
        return {one["name"]: one.get("value") for one in own["env"]}["TOKENMETER_UPSTREAM"]

    for port in (8300, 8200):
        release.apply("upgrade", sets=[f'sidecar={{"serverPort":{port}}}'])
        webhook.sync()
        assert eventually(lambda port=port: upstream() == f"http://127.0.0.1:{port}", 30)


def test_renewal_loses_no_pod(webhook, release, cluster, namespace):
    """The renewal of helm/README.md under a load of creations: no creation fails, and each pod is metered, although the
    volume of the webhook follows its Secret late."""
    before = release.object("secrets", SECRET)["data"]
    with Creations(cluster, namespace) as creations:
        cluster.kubectl("--namespace", NAMESPACE, "delete", "secret", SECRET)
        creations.more()
        release.apply("upgrade")
        after = release.object("secrets", SECRET)["data"]
        assert not set(after.values()) & set(before.values()), "CA, certificate and key are new"
        assert bundles(release)[0] == 2, "both CAs are trusted"
        # The process has the former certificate.
        creations.more()
        webhook.sync()
        assert eventually(lambda: served(webhook) == after["tls.crt"], 30), "the process serves the new certificate"
        creations.more()
        # The former CA is trusted until the next upgrade.
        release.apply("upgrade")
        assert bundles(release) == (1, after["ca.crt"])
        creations.more()
    assert creations.failed == []
    assert creations.unmetered == []


def served(webhook):
    """Returns the certificate that the process shows, as the Secret has it."""
    shown = ssl.get_server_certificate(("127.0.0.1", webhook.ports["https"]))
    return base64.b64encode(shown.encode()).decode()


def test_replaced_registration_costs_the_sidecar_until_the_files_follow(webhook, release, cluster, namespace):
    """Without the former CA (a release that is removed and installed again) pods start unmetered, and none fails, until
    the process has the new certificate."""
    with Creations(cluster, namespace) as creations:
        release.helm("uninstall", NAME)
        creations.more()
        release.apply("install")
        webhook.route()
        assert bundles(release)[0] == 1
        assert eventually(lambda: creations.unmetered, 60)
        webhook.sync()
        trial = pods.vllm("trial")
        assert eventually(lambda: pods.is_metered(cluster.create(namespace, trial, dry=True)[1]), 60)
        unmetered = len(creations.unmetered)
        creations.more()
    assert creations.failed == []
    # One may have been in flight while the files changed.
    assert len(creations.unmetered) <= unmetered + 1
