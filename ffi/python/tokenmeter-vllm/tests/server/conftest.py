"""Servers for the tests."""
import signal

import pytest

from serving import serving


@pytest.fixture(scope="session")
def serve(tmp_path_factory):
    """Starts vLLM with the plugin, as `serving` does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)   # so that SIGTERM still stops the server
    return lambda *options, **facts: serving(tmp_path_factory.mktemp("vllm"), *options, **facts)
