"""Numbers of tokenmeter.h that callers pass or read. The header explains each."""
from enum import IntEnum


class Close(IntEnum):
    """`tm_close`: the end of a response as the host saw it."""

    CLEAN = 0
    CLIENT_GONE = 1
    CUT = 2
    LOCAL = 3


class UsagePolicy(IntEnum):
    """`tm_usage_policy`: the usage that `Exchange.request_edit` may request."""

    OBSERVE = 0
    INJECT = 1
    CONTINUOUS = 2


class TokenType(IntEnum):
    """`tm_token_type`: disjoint types of tokens, and the sums of those of the prompt and of the output."""

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
    INPUT_CACHE_WRITE_1H = 11
    INPUT_CACHED_AUDIO = 12
    INPUT_CACHED_IMAGE = 13
    INPUT_ALL = 100
    OUTPUT_ALL = 101


class Provenance(IntEnum):
    """`tm_provenance`: the source of a count; a higher number is a better source."""

    NONE = 0
    FRAMES = 1
    TOKENIZED = 2
    IDS = 3
    RUNNING = 4
    REPORTED = 5
    ENGINE = 6


class Number(IntEnum):
    """`tm_number`: whole numbers of a record."""

    STATUS = 0
    INPUT_TOKENS = 1
    OUTPUT_TOKENS = 2
    STARTED_UNIX_NS = 3
    ENDED_UNIX_NS = 4
    UPLOAD_NS = 5
    DURATION_NS = 6
    FIRST_BYTE_NS = 7
    FIRST_CHUNK_NS = 8
    FIRST_TOKEN_NS = 9
    FIRST_VISIBLE_NS = 10
    FIRST_TOOL_NS = 11
    GENERATION_NS = 12
    GENERATION_TOKENS = 13
    PER_OUTPUT_TOKEN_NS = 14
    LONGEST_GAP_NS = 15
    STALLS = 16
    STALLED_NS = 17
    CLIENT_WAIT_NS = 18
    ANSWERS = 19
    CHOICES = 20
    VISIBLE_CHARS = 21
    USAGE_REJECTED = 22
    CACHED_EXCESS = 23
    SERVER_QUEUE_NS = 24
    SERVER_PREFILL_NS = 25
    SERVER_DECODE_NS = 26


class Rate(IntEnum):
    """`tm_rate`: rates of a record, per second, and its mean concurrency."""

    OUTPUT = 0
    INPUT = 1
    VISIBLE_CHARS = 2
    CONCURRENCY = 3


class TextValue(IntEnum):
    """`tm_text_value`: texts of a record."""

    ID = 0
    TENANT = 1
    PRINCIPAL = 2
    CONSUMER = 3
    UPSTREAM = 4
    PROVIDER = 5
    DIALECT = 6
    MODEL = 7
    RESPONSE_MODEL = 8
    RESPONSE_ID = 9
    REQUEST_ID = 10
    SERVICE_TIER = 11
    ENDING = 12
    FINISH_REASON = 13
    COST = 14
    CURRENCY = 15
    PRICE_VERSION = 16
    UNPRICED = 17
