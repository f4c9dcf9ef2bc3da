#!/usr/bin/env python3
"""Write the tiny random-weight model as one GGUF file. Needs: gguf, tokenizers, numpy.

usage: write_gguf.py OUT.gguf
"""
import json
import sys

import gguf
import numpy as np

import shape
import vocabulary
from weights import weights


def permute(w, heads):
    """Llama's GGUF keeps rotary pairs side by side, Hugging Face in two halves."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def main(out):
    tok = vocabulary.tokenizer()
    g = gguf.GGUFWriter(out, "llama")
    g.add_name("tiny-random")
    g.add_context_length(shape.CONTEXT)
    g.add_embedding_length(shape.HIDDEN)
    g.add_block_count(shape.LAYERS)
    g.add_feed_forward_length(shape.FEED_FORWARD)
    g.add_head_count(shape.HEADS)
    g.add_head_count_kv(shape.KV_HEADS)
    g.add_rope_dimension_count(shape.HEAD_DIMENSION)
    g.add_rope_freq_base(shape.ROPE_BASE)
    g.add_layer_norm_rms_eps(shape.NORM_EPSILON)
    g.add_vocab_size(shape.VOCABULARY)
    g.add_file_type(gguf.LlamaFileType.ALL_F32)

    ids = tok.get_vocab()
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    names = sorted(ids, key=ids.get)
    g.add_tokenizer_model("gpt2")
    g.add_tokenizer_pre("qwen2")
    g.add_token_list(names)
    g.add_token_types([kinds[vocabulary.SPECIALS[n]] if n in vocabulary.SPECIALS else gguf.TokenType.NORMAL for n in names])
    merges = json.loads(tok.to_str())["model"]["merges"]
    g.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    g.add_bos_token_id(ids[vocabulary.BEGIN])
    g.add_eos_token_id(ids[vocabulary.END])
    g.add_pad_token_id(ids[vocabulary.PAD])
    g.add_add_bos_token(False)
    for key, name in {"fim_pre": "<|fim_prefix|>", "fim_suf": "<|fim_suffix|>", "fim_mid": "<|fim_middle|>",
                      "fim_pad": "<|fim_pad|>", "fim_rep": "<|repo_name|>", "fim_sep": "<|file_sep|>"}.items():
        g.add_uint32(f"tokenizer.ggml.{key}_token_id", ids[name])
    g.add_chat_template(vocabulary.CHAT_TEMPLATE)

    short = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, w in weights(tok).items():
        stem = name.removesuffix(".weight")
        if stem in top:
            to = top[stem]
        else:
            _, _, layer, part = stem.split(".", 3)
            to = f"blk.{layer}.{short[part]}"
            if part == "self_attn.q_proj":
                w = permute(w, shape.HEADS)
            elif part == "self_attn.k_proj":
                w = permute(w, shape.KV_HEADS)
        g.add_tensor(to + ".weight", np.ascontiguousarray(w))
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()


if __name__ == "__main__":
    main(sys.argv[1])
