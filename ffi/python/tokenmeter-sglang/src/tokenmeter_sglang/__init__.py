"""Meters each generation of an SGLang server. SGLang loads it by the entry point `sglang.srt.plugins`."""
from tokenmeter_sglang.plugin import register

__all__ = ["register"]
