"""Settings of the plugin: environment variables `TOKENMETER_*`."""
import os
from collections.abc import Mapping
from dataclasses import dataclass

TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class Settings:
    """The settings as written. An invalid number raises ValueError."""

    upstream: str = "vllm"
    """`TOKENMETER_UPSTREAM_NAME`: the label `upstream`."""
    provider: str = ""
    """`TOKENMETER_PROVIDER`: the provider in the GenAI metrics."""
    prices: str | None = None
    """`TOKENMETER_PRICES`: the price file."""
    tenants: str | None = None
    """`TOKENMETER_TENANTS`: the file of tenant rules."""
    hash_key_file: str | None = None
    """`TOKENMETER_HASH_KEY_FILE`: the secret for hashes of API keys."""
    stall_ms: int = 0
    """`TOKENMETER_STALL_MS`: the gap that is a stall; 0 is the library's default."""
    max_models: int = 0
    """`TOKENMETER_MAX_MODELS`: models with labels of their own; 0 is the library's default."""
    off: bool = False
    """`TOKENMETER_OFF`: installed, but nothing is metered."""
    force: bool = False
    """`TOKENMETER_FORCE`: the engine is hooked in untested versions of vLLM too."""
    shared: str | None = None
    """`PROMETHEUS_MULTIPROC_DIR`: the directory in which vLLM's API processes share their metrics."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Reads the environment; an empty variable counts as unset."""

        def text(name: str) -> str | None:
            return environment.get(f"TOKENMETER_{name}") or None

        def flag(name: str) -> bool:
            return (text(name) or "").lower() in TRUE

        return cls(
            upstream=text("UPSTREAM_NAME") or cls.upstream,
            provider=text("PROVIDER") or cls.provider,
            prices=text("PRICES"),
            tenants=text("TENANTS"),
            hash_key_file=text("HASH_KEY_FILE"),
            stall_ms=int(text("STALL_MS") or 0),
            max_models=int(text("MAX_MODELS") or 0),
            off=flag("OFF"),
            force=flag("FORCE"),
            shared=environment.get("PROMETHEUS_MULTIPROC_DIR") or None,
        )
