"""The texts of the fakes: every provider responds with the same words."""
import itertools

TEXT = ["The", " answer", " is", " forty", "-two", ", or “Ä”", "."]
THOUGHT = ["Let", " me", " think"]
TOOL = {"name": "weather", "arguments": ['{"city"', ':"Zürich', '"}']}
ARGUMENTS = "".join(TOOL["arguments"])

numbers = itertools.count(1)


def restart():
    """Restarts the ids."""
    global numbers
    numbers = itertools.count(1)


def fresh(prefix):
    """An id like those of a provider."""
    return f"{prefix}{next(numbers):024x}"
