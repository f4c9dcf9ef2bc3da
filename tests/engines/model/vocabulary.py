"""The tokenizer: byte-level BPE with Qwen2's splitting rule, its special tokens and chat template.

The text is noise, but the structure is a real tokenizer's, so that servers take their
ordinary code paths (tool calls, thinking, characters cut in two).
"""
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from corpus import corpus
from shape import VOCABULARY

# name -> is it a control token (hidden from text) or ordinary marked-up text
SPECIALS = {
    "<|endoftext|>": True, "<|im_start|>": True, "<|im_end|>": True,
    "<|fim_prefix|>": True, "<|fim_middle|>": True, "<|fim_suffix|>": True,
    "<|fim_pad|>": True, "<|repo_name|>": True, "<|file_sep|>": True,
    "<tool_call>": False, "</tool_call>": False, "<think>": False, "</think>": False,
}
BEGIN = PAD = "<|endoftext|>"
END = "<|im_end|>"

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

CHAT_TEMPLATE = (pathlib.Path(__file__).parent / "chat_template.jinja").read_text()


def tokenizer():
    """Train the tokenizer."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIALS), show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    for name, control in SPECIALS.items():
        tok.add_tokens([AddedToken(name, special=control, normalized=False)])
    assert tok.get_vocab_size() == VOCABULARY, tok.get_vocab_size()
    return tok


def token_bytes(tok):
    """The bytes of each token, by id."""
    shown_as_is = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in shown_as_is}
    table.update({chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in shown_as_is)})
    names = {i: t for t, i in tok.get_vocab().items()}
    return [names[i].encode() if names[i] in SPECIALS else bytes(table[c] for c in names[i])
            for i in range(VOCABULARY)]
