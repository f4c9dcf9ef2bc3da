#!/usr/bin/env python3
"""Write the tiny random-weight model as a Hugging Face directory. Needs: tokenizers, safetensors, numpy.

usage: write_hf.py OUTDIR
"""
import json
import pathlib
import sys

from safetensors.numpy import save_file

import shape
import vocabulary
from weights import weights


def main(out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tok = vocabulary.tokenizer()
    ids = tok.get_vocab()

    def put(name, value):
        (out / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    tok.save(str(out / "tokenizer.json"))
    put("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": shape.CONTEXT, "add_bos_token": False,
        "eos_token": vocabulary.END, "pad_token": vocabulary.PAD, "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": {str(ids[n]): {"content": n, "special": control, "normalized": False,
                                               "lstrip": False, "rstrip": False, "single_word": False}
                                 for n, control in vocabulary.SPECIALS.items()}})
    (out / "chat_template.jinja").write_text(vocabulary.CHAT_TEMPLATE)
    put("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32", "vocab_size": shape.VOCABULARY,
        "hidden_size": shape.HIDDEN, "num_hidden_layers": shape.LAYERS, "num_attention_heads": shape.HEADS,
        "num_key_value_heads": shape.KV_HEADS, "head_dim": shape.HEAD_DIMENSION, "intermediate_size": shape.FEED_FORWARD,
        "max_position_embeddings": shape.CONTEXT, "rms_norm_eps": shape.NORM_EPSILON, "rope_theta": shape.ROPE_BASE, "hidden_act": "silu",
        "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
        "bos_token_id": ids[vocabulary.BEGIN], "eos_token_id": ids[vocabulary.END], "pad_token_id": ids[vocabulary.PAD]})
    put("generation_config.json", {"bos_token_id": ids[vocabulary.BEGIN], "eos_token_id": ids[vocabulary.END]})
    save_file(weights(tok), str(out / "model.safetensors"), metadata={"format": "pt"})


if __name__ == "__main__":
    main(sys.argv[1])
