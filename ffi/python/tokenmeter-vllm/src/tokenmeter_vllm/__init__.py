"""Meters each request of a vLLM server: `vllm serve --middleware tokenmeter_vllm.Meter`."""
from tokenmeter_vllm.middleware import Meter
from tokenmeter_vllm.plugin import register

__all__ = ["Meter", "register"]
