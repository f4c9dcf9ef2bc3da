"""The fakes, and tokenmeter in front of each."""
import os
import pathlib
import sys

import pytest

# The process, the metrics page and the usage edit are those of the engine tests.
sys.path.insert(1, str(pathlib.Path(__file__).parent.parent / "engines"))

import anthropic_fake  # noqa: E402
import azure_fake  # noqa: E402
import gemini_fake  # noqa: E402
import openai_fake  # noqa: E402
import openrouter_fake  # noqa: E402
from certificate import Authority  # noqa: E402
from fake import Fake  # noqa: E402
from rig import Proxy  # noqa: E402

PROVIDERS = {"openai": openai_fake, "azure_openai": azure_fake, "openrouter": openrouter_fake,
             "anthropic": anthropic_fake, "gemini": gemini_fake}
"""By their `kind`."""


def pytest_configure():
    # loopback addresses bypass the machine's HTTP proxy
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"


CLEAR, HTTP1, HTTP2 = TRANSPORTS = ("clear", "http1", "http2")
"""How tokenmeter reaches the provider: without TLS, or with TLS and what is agreed there."""


def on_all(kinds):
    """Every kind with every transport, for `indirect` parameters."""
    return [f"{kind}/{transport}" for kind in kinds for transport in TRANSPORTS]


class Place:
    """A provider, and tokenmeter in front of it. With TLS the provider has its own name: the kind follows from it, `Host` is
    that name, and its certificate is of a private authority.
    """

    def __init__(self, kind, transport, folder):
        self.kind, self.transport, self.folder = kind, transport, folder
        provider = PROVIDERS[kind]
        self.direct = Fake(provider)
        if transport == CLEAR:
            self.fake = self.direct
            self.proxy = Proxy(self.fake.url, folder, "--kind", kind)
        else:
            authority = Authority(folder, [provider.HOST])
            self.fake = Fake(provider, authority, ["http/1.1"] if transport == HTTP1 else ["h2", "http/1.1"])
            url = f"https://{provider.HOST}:{self.fake.port}"
            self.proxy = Proxy(url, folder, "--upstream-ca", str(authority.ca), hosts={provider.HOST: "127.0.0.1"})

    @property
    def version(self):
        """The version of HTTP that the provider must receive."""
        return "2" if self.transport == HTTP2 else "1.1"

    def stop(self):
        self.proxy.stop()
        for fake in {self.fake, self.direct}:
            fake.stop()


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """The places that were started, by kind and transport."""
    started = {}

    def start(name):
        if name not in started:
            kind, _, transport = name.partition("/")
            started[name] = Place(kind, transport or CLEAR, tmp_path_factory.mktemp(kind))
        return started[name]
    yield start
    for place in started.values():
        place.stop()


@pytest.fixture
def place(request, places):
    """A place in which nothing of an earlier test is under way."""
    place = places(request.param)
    place.fake.forget()
    place.direct.forget()
    place.proxy.skip_rows()
    return place
