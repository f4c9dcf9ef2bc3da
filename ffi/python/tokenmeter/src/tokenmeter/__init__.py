"""The meter of LLM inference: tokens, timing and cost of one exchange. Importing it hooks nothing."""
from tokenmeter.errors import Error, Status
from tokenmeter.exchange import Exchange
from tokenmeter.meter import Meter
from tokenmeter.record import Record, TokenCount
from tokenmeter.steps import OutputTokens
from tokenmeter.values import Close, Format, Number, Provenance, Rate, Text, TokenType

__all__ = [
    "Close",
    "Error",
    "Exchange",
    "Format",
    "Meter",
    "Number",
    "OutputTokens",
    "Provenance",
    "Rate",
    "Record",
    "Status",
    "Text",
    "TokenCount",
    "TokenType",
]
