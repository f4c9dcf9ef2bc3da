"""The entry point of `vllm.general_plugins`."""
import sys
from types import ModuleType

from tokenmeter_vllm import registry
from tokenmeter_vllm.after_import import AfterImport
from tokenmeter_vllm.circuit_breaker import logger
from tokenmeter_vllm.hooks import Hooks
from tokenmeter_vllm.settings import Settings

TESTED = (0, 32)
"""The version of vLLM whose methods the hooks were tested with."""
ENGINE = "vllm.v1.engine.async_llm"
"""The module that runs the engine in API processes. Its import is the sign of one."""
registered = False
installed: Hooks | None = None


def register() -> None:
    """Hooks the engine once its module is imported.

    vLLM calls this in every process: API servers, engine cores, workers, and one that only looks at a model class.
    Importing the engine in all of them would cost each seconds. vLLM does not catch exceptions of this call.
    """
    global registered
    if registered:
        return
    registered = True
    try:
        settings = Settings.read()
        if not settings.off and is_supported(settings.force):
            AfterImport(ENGINE, hook)
    except Exception:
        logger.exception("tokenmeter: the engine is not hooked; counts are those that responses report")


def hook(engine: ModuleType) -> None:
    """Wraps the engine's methods."""
    global installed
    try:
        installed = Hooks(engine.AsyncLLM, engine.OutputProcessor, registry.get)
    except Exception:
        logger.exception("tokenmeter: the engine is not hooked; counts are those that responses report")


def start() -> None:
    """Tells the registry of the hooks, so that the metrics page names the level before the first request."""
    if installed is not None:
        installed.start()


def is_supported(force: bool) -> bool:
    """Returns true for the tested version; of another one it warns, and `force` decides."""
    version = getattr(sys.modules.get("vllm"), "__version_tuple__", ())[:2]
    if version == TESTED:
        return True
    logger.warning(
        "tokenmeter: vLLM %s is not the tested %s; %s",
        ".".join(map(str, version)) or "of unknown version",
        ".".join(map(str, TESTED)),
        "it is hooked all the same" if force else "counts are those that responses report (see TOKENMETER_FORCE)",
    )
    return force
