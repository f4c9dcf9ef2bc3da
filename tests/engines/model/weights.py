"""The weights of a two-layer Llama: random, the same on every run."""
import numpy as np

from shape import FEED_FORWARD, HEAD_DIMENSION, HEADS, HIDDEN, KV_HEADS, LAYERS, SEED, VOCABULARY
from vocabulary import SPECIALS, token_bytes


def weights(tok):
    """Hugging Face names -> float32 arrays.

    Rows of the output matrix for tokens that are not plain text are zero, which makes them
    very rare unless a grammar or a logit bias asks for them.
    """
    rng = np.random.Generator(np.random.PCG64(SEED))

    def normal(*shape, std=0.12):
        return (rng.standard_normal(shape) * std).astype(np.float16).astype(np.float32)

    w = {"model.embed_tokens.weight": normal(VOCABULARY, HIDDEN, std=1.0)}
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        w[p + "input_layernorm.weight"] = np.ones(HIDDEN, np.float32)
        w[p + "self_attn.q_proj.weight"] = normal(HEADS * HEAD_DIMENSION, HIDDEN)
        w[p + "self_attn.k_proj.weight"] = normal(KV_HEADS * HEAD_DIMENSION, HIDDEN)
        w[p + "self_attn.v_proj.weight"] = normal(KV_HEADS * HEAD_DIMENSION, HIDDEN)
        w[p + "self_attn.o_proj.weight"] = normal(HIDDEN, HEADS * HEAD_DIMENSION)
        w[p + "post_attention_layernorm.weight"] = np.ones(HIDDEN, np.float32)
        w[p + "mlp.gate_proj.weight"] = normal(FEED_FORWARD, HIDDEN)
        w[p + "mlp.up_proj.weight"] = normal(FEED_FORWARD, HIDDEN)
        w[p + "mlp.down_proj.weight"] = normal(HIDDEN, FEED_FORWARD)
    w["model.norm.weight"] = np.ones(HIDDEN, np.float32)
    out = normal(VOCABULARY, HIDDEN, std=0.4)
    first_special = VOCABULARY - len(SPECIALS)
    for i, raw in enumerate(token_bytes(tok)):
        if i >= first_special or not is_text(raw):
            out[i] = 0
    w["lm_head.weight"] = out
    return w


def is_text(raw):
    """True if these bytes may occur in ordinary output: whole, printable UTF-8."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return (text.isprintable() or text.isspace()) and "\r" not in text
