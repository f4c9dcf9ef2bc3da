"""The meter of LLM inference: tokens, timing and cost of one exchange. Importing it hooks nothing."""
from tokenmeter.errors import Error, Status
from tokenmeter.exchange import Exchange
from tokenmeter.jwks import FetchError
from tokenmeter.meter import Meter
from tokenmeter.record import Record, TokenCount
from tokenmeter.steps import OutputTokens
from tokenmeter.tenants_watch import TenantsWatch
from tokenmeter.values import Close, Number, Provenance, Rate, TextValue, TokenType, UsagePolicy

__all__ = [
    "Close",
    "Error",
    "Exchange",
    "FetchError",
    "Meter",
    "Number",
    "OutputTokens",
    "Provenance",
    "Rate",
    "Record",
    "Status",
    "TenantsWatch",
    "TextValue",
    "TokenCount",
    "TokenType",
    "UsagePolicy",
]
