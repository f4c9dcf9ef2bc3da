"""Options and fixtures: the engines, with or without the meter, and one rig per engine."""
import os
import signal

import pytest

from engine import KINDS
from rig import Rig

LAST = ("test_cut", "test_forced")
"""Topics that stop or restart their engine: after all others of the same engine, in this order."""


def pytest_addoption(parser):
    parser.addoption("--engine", choices=[*KINDS, "all"], default="all")
    parser.addoption("--proxy", choices=["tokenmeter", "none"], default="tokenmeter",
                     help="none: test the tests; clients talk to the tap, what needs tokenmeter's metrics is left out")


def pytest_configure(config):
    config.addinivalue_line("markers", "metered: needs tokenmeter's own answers or metrics")
    config.addinivalue_line("markers", "engine(name): for these engines only")
    # loopback addresses bypass the machine's HTTP proxy
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"
    # so that SIGTERM still stops the engines
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_generate_tests(metafunc):
    chosen = metafunc.config.getoption("--engine")
    names = [name for name, kind in KINDS.items() if not kind.only_by_name] if chosen == "all" else [chosen]
    topic = metafunc.module.__name__
    names = [name for name in names if KINDS[name].topics is None or topic in KINDS[name].topics]
    for marker in metafunc.definition.iter_markers("engine"):
        names = [name for name in names if name in marker.args]
    if "case" in metafunc.fixturenames and hasattr(metafunc.module, "CASES"):
        which = metafunc.module.CASES
        pairs = [pytest.param(name, case, id=f"{name}-{case.name}") for name in names for case in which(name)]
        metafunc.parametrize("rig,case", pairs, indirect=["rig"], scope="session")
    elif "rig" in metafunc.fixturenames:
        metafunc.parametrize("rig", names, indirect=True, scope="session")


def pytest_collection_modifyitems(config, items):
    kinds = list(KINDS)

    def wanted(item):
        # a test for other engines than the chosen one has no engine; its parameters may select some only
        rig = item.callspec.params["rig"]
        return rig in kinds and all(rig in marker.args for marker in item.iter_markers("engine")) and not (
            config.getoption("--proxy") == "none" and item.get_closest_marker("metered"))

    def order(item):
        return kinds.index(item.callspec.params["rig"]), LAST.index(item.module.__name__) + 1 if item.module.__name__ in LAST else 0
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = sorted(filter(wanted, items), key=order)


@pytest.fixture(scope="session")
def rig(request, tmp_path_factory):
    """A running engine with the tap and tokenmeter before it."""
    rig = Rig(request.param, tmp_path_factory.mktemp(request.param), request.config.getoption("--proxy") != "none")
    yield rig
    rig.stop()
