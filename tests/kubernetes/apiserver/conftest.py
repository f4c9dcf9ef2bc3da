"""The cluster with the chart's release and its webhook: one for all tests."""

import itertools
import signal

import pytest

from cluster import Cluster
from process import eventually
from pods import is_metered, vllm
from release import NAMESPACE, Release, Webhook


def pytest_configure(config):
    # so that SIGTERM still stops the processes
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Returns the API server, without the chart."""
    one = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        one.start()
        for name in ("kube-system", "kube-public", "kube-node-lease", "default", NAMESPACE):
            one.namespace(name)
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="session")
def release(cluster, tmp_path_factory):
    """Returns the release, installed with the chart's default values."""
    one = Release(cluster, tmp_path_factory.mktemp("release"))
    one.apply("install")
    return one


@pytest.fixture(scope="session")
def running(release, tmp_path_factory):
    """Returns the webhook's process."""
    one = Webhook(release, tmp_path_factory.mktemp("webhook"))
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture
def webhook(running, cluster):
    """Returns the webhook in use: the server calls it."""
    name = cluster.namespace("called", **{"tokenmeter.io/injection": "enabled"})
    # The server learns of a registration shortly after it is stored.
    assert eventually(lambda: is_metered(cluster.create(name, vllm("any"), dry=True)[1]), 30), running.log.read_text()
    return running


NUMBERS = itertools.count()


@pytest.fixture
def namespace(cluster):
    """Returns a new namespace that opted in."""
    return cluster.namespace(f"chat-{next(NUMBERS)}", **{"tokenmeter.io/injection": "enabled"})
