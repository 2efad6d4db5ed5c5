"""Writes small tokenizers and what the tokenizers package says of texts.

Run it where the package is: python make.py. The vocabularies are trained on the
texts below, so they mean nothing; the pipelines are those of usual models.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[4]

WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CORPUS = [(ROOT / name).read_text()[:6000] for name in ("README.md", "RATIONALE.md", "CONTRIBUTING.md")]
TEXTS = [
    "", " ", "\n", "Hello world", "  leading", "trailing  ", "a\r\n\r\nb", "3.14159 1000000", "x\t\ty  z",
    "The quick brown fox isn't SHOUTING, IT'S", "we'll don't I'M l'été", "naïve café — “quotes” …",
    "Grüße aus München", "cafe\u0301 e\u0301", "你好世界! 日本語のテキスト", "中文 测试123", "🎉🎉 👩‍👩‍👧 🇩🇪", "\x00\x01 ctrl \x7f",
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n", "<|im_end|><|im_end|> x", "<|im_start", "a <mask> b<mask>c",
    "word wordy word", "func (r *Repo) at(pos token.Pos) string {\n\treturn nil\n}\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ﬁ ² Å", "\u00a0nbsp\u2003em\u3000wide", "▁under ▁ score", "tab\tand\u200bzero",
] + [t[i : i + 120] for t in CORPUS for i in range(0, 1200, 120)]


def bpe(pre, norm=None, decoder=None, special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"), alphabet=None, size=600, **model):
    t = Tokenizer(models.BPE(**model))
    t.decoder = decoder or decoders.ByteLevel()
    if norm:
        t.normalizer = norm
    if pre:
        t.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), show_progress=False, max_token_length=12,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet,
    )
    t.train_from_iterator(CORPUS, trainer)
    return t


def split(regex, **level):
    steps = [pre_tokenizers.Split(Regex(regex), "isolated", False)]
    return pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False, **level)])


BYTES = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
SPACES = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def spaced(pre=None, norm=None):
    t = bpe(pre, norm, SPACES, BYTES, [], 900, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    # Bytes are tokens of the vocabulary only, not to be found in texts.
    d = json.loads(t.to_str())
    d["added_tokens"] = [a for a in d["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(d))


def kinds():
    yield "letters", bpe(split(WORDS % ""), normalizers.NFC())
    yield "threes", bpe(split(WORDS % "{1,3}"), ignore_merges=True)
    yield "usual", bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    yield "digits", bpe(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), normalizers.NFKC()
    )
    t = bpe(None, decoder=decoders.ByteLevel(), size=300, alphabet=[])
    yield "unknown", t
    t = spaced(norm=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    t.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A $B </s>", [("<s>", 1), ("</s>", 2)])
    yield "spaces", t
    yield "first", spaced(pre_tokenizers.Metaspace("▁", "first", True))
    yield "never", spaced(pre_tokenizers.Metaspace("▁", "never", False))
    t = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.Lowercase())
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    t.add_tokens([AddedToken("word", single_word=True, normalized=False)])
    yield "added", t


for name, t in kinds():
    t.save(str(HERE / f"{name}.json"), pretty=False)
    cases = []
    for text in TEXTS:
        ids = t.encode(text).ids
        cases.append({"text": text, "ids": ids, "decoded": t.decode(ids, skip_special_tokens=True)})
    (HERE / f"{name}.cases.json").write_text(json.dumps(cases, ensure_ascii=False))
