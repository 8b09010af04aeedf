"""Small tokenizers as they come along with somebody else's weights, built of parts of the library."""

import json

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from regard.data.text.roles import Roles
from regard.data.text.tokenizer import Tokenizer

TEXT = ["The dog runs through the park.", "A man plays the guitar.", "Der Hund läuft — 1984, naïve!"] * 4


def wordpiece() -> tokenizers.Tokenizer:
    """BERT's kind."""
    library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=specials, show_progress=False)
    library.train_from_iterator(TEXT, trainer)
    return library


def byte_level(*specials: str) -> tokenizers.Tokenizer:
    """GPT-2's kind."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(TEXT, trainer)
    library.add_special_tokens(list(specials) or ["<|endoftext|>"])
    return library


def byte_fallback() -> tokenizers.Tokenizer:
    """Llama's kind."""
    library = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    library.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    library.decoder = decoders.Sequence(parts)
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=names, show_progress=False, max_token_length=6)
    library.pre_tokenizer = pre_tokenizers.Metaspace()  # so that no token is learned that reaches over a space
    library.train_from_iterator(TEXT, trainer)
    library.pre_tokenizer = None
    # The bytes are no special tokens: text becomes them.
    kept = json.loads(library.to_str())
    kept["added_tokens"] = kept["added_tokens"][:3]
    return tokenizers.Tokenizer.from_str(json.dumps(kept))


def unigram() -> tokenizers.Tokenizer:
    """T5's kind; "</s>" is a piece, which text could become."""
    library = tokenizers.Tokenizer(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    specials = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=specials, unk_token="<unk>", show_progress=False)
    library.train_from_iterator(TEXT, trainer)
    library.add_special_tokens(["<extra_id_1>", "<extra_id_0>"])
    return library


BERT = Roles(end="[SEP]", pad="[PAD]", start="[CLS]", unknown="[UNK]", mask="[MASK]")
GPT2 = Roles(end="<|endoftext|>", start="<|endoftext|>")
LLAMA = Roles(end="</s>", start="<s>", unknown="<unk>", prefix=("<s>",))
T5 = Roles(end="</s>", pad="<pad>", start="<pad>", unknown="<unk>", gaps=("<extra_id_0>", "<extra_id_1>"))


def bert() -> Tokenizer:
    return Tokenizer(wordpiece(), BERT)


def gpt2() -> Tokenizer:
    return Tokenizer(byte_level(), GPT2)


def llama() -> Tokenizer:
    return Tokenizer(byte_fallback(), LLAMA)


def t5() -> Tokenizer:
    return Tokenizer(unigram(), T5)
