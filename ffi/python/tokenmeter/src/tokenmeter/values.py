"""Numbers of tokenmeter.h that callers pass or read."""
from enum import IntEnum


class Close(IntEnum):
    """Ends of an exchange as its host sees them."""

    CLEAN = 0
    CLIENT_GONE = 1
    CUT = 2


class Format(IntEnum):
    """Formats of the metrics page."""

    TEXT = 0
    OPENMETRICS = 1


class TokenType(IntEnum):
    """Disjoint types of tokens: their sum counts every token once."""

    INPUT = 0
    INPUT_CACHED = 1
    INPUT_CACHE_WRITE = 2
    INPUT_AUDIO = 3
    INPUT_IMAGE = 4
    INPUT_VIDEO = 5
    OUTPUT = 6
    OUTPUT_REASONING = 7
    OUTPUT_AUDIO = 8
    OUTPUT_IMAGE = 9
    OUTPUT_VIDEO = 10


class Provenance(IntEnum):
    """Sources of a token count, best first."""

    ENGINE = 0
    REPORTED = 1
    RUNNING = 2
    IDS = 3
    TOKENIZED = 4
    FRAMES = 5
    NONE = 6


class Number(IntEnum):
    """Whole numbers of a record."""

    TTFT_NS = 0
    DURATION_NS = 1
    CHOICES = 2


class Rate(IntEnum):
    """Rates of a record."""

    OUTPUT_TOKENS_PER_SECOND = 0


class Text(IntEnum):
    """Texts of a record."""

    ENDING = 0
    MODEL = 1
    TENANT = 2
    CHARGE = 3
    CURRENCY = 4
