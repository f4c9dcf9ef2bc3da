"""A real vLLM with the plugin. The tools of `tests/engines` start it, talk to it and read its page."""
import contextlib
import os
import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[2]
sys.path.insert(0, str(PYTHON.parents[1] / "tests" / "engines"))
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which the packages look installed: their sources, and the plugin's entry point."""
    folder = tmp_path_factory.mktemp("installed")
    for name in ("tokenmeter", "tokenmeter-vllm"):
        module = name.replace("-", "_")
        (folder / module).symlink_to(PYTHON / name / "src" / module)
    facts = folder / "tokenmeter_vllm-0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tokenmeter-vllm\nVersion: 0\n")
    (facts / "entry_points.txt").write_text("[vllm.general_plugins]\ntokenmeter = tokenmeter_vllm:register\n")
    return folder


@pytest.fixture(scope="session")
def serve(installed, tmp_path_factory):
    """Starts vLLM with options and environment variables for the time of a `with`."""
    from engine import Vllm

    signal.signal(signal.SIGTERM, signal.default_int_handler)   # so that SIGTERM still stops the server

    @contextlib.contextmanager
    def started(*options, **environment):
        before = dict(os.environ)
        os.environ.update({"PYTHONPATH": str(installed), **environment})
        try:
            Vllm.options = ("--middleware", "tokenmeter_vllm.Meter", *options)
            server = Vllm(tmp_path_factory.mktemp("vllm"))
        finally:
            os.environ.clear()
            os.environ.update(before)
        try:
            yield server
        finally:
            server.stop()
    return started
