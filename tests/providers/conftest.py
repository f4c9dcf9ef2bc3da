"""The fakes, and tokenmeter before each."""
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
from fake import Fake  # noqa: E402
from rig import Proxy  # noqa: E402

PROVIDERS = {"openai": openai_fake, "azure_openai": azure_fake, "openrouter": openrouter_fake,
             "anthropic": anthropic_fake, "gemini": gemini_fake}
"""By their `kind`."""


def pytest_configure():
    # loopback addresses bypass the machine's HTTP proxy
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"


class Place:
    """A provider, and tokenmeter before it."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.fake = Fake(PROVIDERS[kind])
        self.proxy = Proxy(self.fake, folder, "--kind", kind)

    def stop(self):
        self.proxy.stop()
        self.fake.stop()


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """The places that were started, by their kind."""
    started = {}

    def start(kind):
        if kind not in started:
            started[kind] = Place(kind, tmp_path_factory.mktemp(kind))
        return started[kind]
    yield start
    for place in started.values():
        place.stop()


@pytest.fixture
def place(request, places):
    """A place in which nothing of an earlier test is under way."""
    place = places(request.param)
    place.fake.forget()
    place.proxy.skip_rows()
    return place
