"""The size of the tiny model, and the seed from which all else follows."""

SEED = 1
VOCABULARY = 1920
HIDDEN = 64
LAYERS = 2
HEADS = 2
KV_HEADS = 1
FEED_FORWARD = 128
CONTEXT = 4096
HEAD_DIMENSION = HIDDEN // HEADS
NORM_EPSILON = 1e-5
ROPE_BASE = 10000.0
