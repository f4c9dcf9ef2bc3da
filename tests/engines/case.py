"""A request, and the expected facts of its answer."""
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    path: str
    method: str = "POST"
    fields: dict = None
    """The JSON body; `raw` is a body that is not JSON."""
    raw: bytes = None
    headers: tuple = ()
    error: int = None
    """The expected status, if it is not a success."""
    passthrough: bool = False
    """Not an inference endpoint: forwarded and not metered."""
    indent: int = None
    """The layout of the body; None for one line."""
    usage_covers_all: bool = True
    """True if the engine's usage, if requested, covers every choice."""

    @property
    def body(self):
        if self.raw is not None or self.fields is None:
            return self.raw
        return json.dumps(self.fields, ensure_ascii=False, indent=self.indent).encode()

    @property
    def streamed(self):
        return bool(self.fields and self.fields.get("stream"))

    @property
    def several_prompts(self):
        prompt = (self.fields or {}).get("prompt")
        return isinstance(prompt, list) and isinstance(prompt[0], str | list)

    @property
    def choices(self):
        return (self.fields or {}).get("n", 1)

    def but(self, **fields):
        """A copy with other fields; None removes one."""
        merged = {k: v for k, v in {**self.fields, **fields}.items() if v is not None}
        return Case(self.name, self.path, self.method, merged, None, self.headers)
