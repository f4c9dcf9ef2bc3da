"""A real vLLM with the plugin. The tools of `tests/engines` start it, talk to it and read its page."""
import contextlib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[2]
sys.path.insert(0, str(PYTHON.parents[1] / "tests" / "engines"))
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"

from engine import Vllm  # noqa: E402

FAULTS = {
    "hook": '''
import os
from tokenmeter_vllm.hooks import Step
send = Step.send
def failing(step):
    if os.path.exists(os.environ["FAULT_FILE"]):
        raise RuntimeError("a fault of the test")
    send(step)
Step.send = failing
''',
    # The version that the plugin sees is vLLM's; the tested one is changed instead.
    "version": "import tokenmeter_vllm.plugin\ntokenmeter_vllm.plugin.TESTED = (0, 1)\n",
}
"""Code that a server runs at its start."""


def install(folder):
    """Fills a folder for PYTHONPATH in which the packages look installed: their sources, and the plugin's entry point."""
    for name in ("tokenmeter", "tokenmeter-vllm"):
        module = name.replace("-", "_")
        (folder / module).symlink_to(PYTHON / name / "src" / module)
    facts = folder / "tokenmeter_vllm-0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tokenmeter-vllm\nVersion: 0\n")
    (facts / "entry_points.txt").write_text("[vllm.general_plugins]\ntokenmeter = tokenmeter_vllm:register\n")


@contextlib.contextmanager
def serving(folder, *options, plugin=True, fault=None, **environment):
    """Serves in a new folder, for the time of a `with`. `fault` names one of `FAULTS`."""
    if plugin:
        install(folder)
        environment["PYTHONPATH"] = str(folder)
        options = ("--middleware", "tokenmeter_vllm.Meter", *options)
    if fault:
        (folder / "sitecustomize.py").write_text(FAULTS[fault])
        environment["FAULT_FILE"] = str(folder / "fault")
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        Vllm.options = options
        server = Vllm(folder)
    finally:
        os.environ.clear()
        os.environ.update(before)
    try:
        yield server
    finally:
        server.stop()
