"""The tokenizer's training text: generated from a word list, the same on every run."""
import random

from shape import SEED

WORDS = """the of and to in is that it for was on are as with his they at be this from have or by one had not but
what all were when we there can an your which their said if do will each about how up out them then she many some so
these would other into has more her two like him see time could no make than first been its who now people my made over
did down only way find use may water long little very after words called just where most know get through back much
before go good new write our used me man too any day same right look think also around another came come work three
word must because does part even place well such here take why things help put years different away again off went old
number great tell men say small every found still between name should home big give air line set own under read last
never us left end along while might next sound below saw something thought both few those always looked show large
often together asked house world going want school important until form food keep children feet land side without boy
once animals life enough took sometimes four head above kind began almost live page got earth need far hand high year
token server stream model count clock latency request response proxy buffer""".split()
OTHER = ["привет мир", "как дела сегодня", "здравствуй", "déjà vu", "naïve café", "größer", "señor", "你好世界",
         "今天天气很好", "機械学習", "こんにちは", "ありがとう", "안녕하세요", "감사합니다", "مرحبا بالعالم", "नमस्ते दुनिया",
         "😀😃😄", "🚀✨🔥", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "€ £ ¥", "→ ← ⇒", "…", "“quoted”"]


def corpus(lines=6000):
    """Yield prose, some of it in other scripts, JSON and code."""
    rng = random.Random(SEED)
    for i in range(lines):
        words = [WORDS[int(len(WORDS) * rng.random() ** 2)] for _ in range(5 + int(12 * rng.random()))]
        kind = i % 8
        if kind == 5:
            words.insert(int(len(words) * rng.random()), OTHER[int(len(OTHER) * rng.random())])
        text = " ".join(words)
        if kind == 6:
            yield '{"name": "%s", "arguments": {"%s": "%s", "%s": %d}}\n' % (*words[:4], int(1e4 * rng.random()))
        elif kind == 7:
            yield "def %s_%s(%s):\n    return %s + %d\n" % (*words[:4], int(100 * rng.random()))
        else:
            yield text.capitalize() + ".?!"[kind % 3] + (" " if kind % 2 else "\n")
