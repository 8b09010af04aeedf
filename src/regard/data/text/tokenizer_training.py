"""Tokenizer training: a vocabulary is learned from text, by byte-pair encoding (BPE) or one of six other kinds.

How `bpe` keeps spaces: a space belongs to the word behind it, and each text is given one space in front, which decoding
takes away again. Thus a word is the same token at the start of a sentence and inside it, and no text is changed.
`unigram`, `wordpiece` and `sentencepiece` do likewise, with "▁" in place of the space.

Unicode writes "é" in two ways, as one character or as two, and people's files and keyboards do either. NFC is the first
way, in which most text is; text that is in NFC stays as it is under it, and so does what is learned from such text.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import ceil, sqrt
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.data.text.roles import SPECIALS
from regard.data.text.sentencepiece_training import with_byte_fallback
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_parts import BYTES, FORMS, SPACE, byte_symbols
from regard.errors import DataError, UsageError, did_you_mean

KINDS = ("bpe", "bytes", "unigram", "wordpiece", "sentencepiece", "characters", "words")
MARKED = ("unigram", "wordpiece", "sentencepiece")  # those that write ▁ for a space
SPACED = ("bpe", *MARKED)  # those that give each text a space in front, but passages of running text none

LARGEST = 32_000  # tokens of a vocabulary whose size nobody chose
LONG_WORD = 12  # characters; where words are longer on average, spaces do not part words
MOST_ONCE = 0.4  # of all words; where more occur once, most of a new text would be unknown

# Thai and Lao, Burmese, Khmer, Chinese and Japanese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

# A word may hold hyphens and apostrophes inside (t-shirt, dog's); a run of punctuation is a word of its own.
WORD = r"\w+(?:[-'’]\w+)*|[^\w\s]+"


def learn(
    texts: Iterable[str],
    *,
    kind: str,
    vocab_size: int,
    specials: Sequence[str] = (),
    running: bool = False,
    lowercase: bool = False,
    normalisation: str = "none",
    min_frequency: int = 1,
) -> Tokenizer:
    """Learn a tokenizer from a stream of texts, or, if `running`, of the passages of a text, which get no space in front.

    `vocab_size` is the most tokens it may have, special ones included; a small corpus gives fewer. `specials` are
    tokens asked for beside the four, as "<mask>"; they follow them. The same texts give the same tokenizer each time,
    but for `unigram` and `wordpiece`, where the library leaves ties to chance: keep the file.

    normalisation: "auto" is nfc if every text is in NFC, so that nothing that is learned changes; the kind `bytes`, whose
    tokens are known without reading the texts, is then left as it is, and so is `sentencepiece`
    min_frequency: how often a word must occur to be a token, of the kind `words`; the others ask for two where they count
    """
    all_specials = [*SPECIALS, *specials]
    _check_asked(kind, all_specials, normalisation)
    if kind == "bytes":
        # Its tokens are known beforehand: one text shows that there is any.
        texts = islice((text for text in texts if text.strip()), 1)
    reading = _Reading(texts, Counter() if kind == "sentencepiece" else set(), lowercase=lowercase)
    form = "none" if normalisation == "auto" else normalisation
    library = blank(kind, running=running, lowercase=lowercase, normalisation=form)
    try:
        library.train_from_iterator(
            reading, _trainer(kind, vocab_size=vocab_size, specials=all_specials, min_frequency=min_frequency)
        )
    except Exception as error:  # the library raises nothing more particular
        if "not large enough" not in str(error):
            raise
    if not "".join(reading.alphabet).strip():
        raise DataError("There is no text to learn a vocabulary from.", "Give a corpus with at least one word.")
    needed = _needed(kind, library, reading, n_specials=len(all_specials))
    if vocab_size < needed:
        raise UsageError(
            f"A vocabulary of kind {kind} needs at least {needed:,} tokens for this text, not {vocab_size:,}:"
            f" {len(all_specials)} special ones and its alphabet.",
            f"Set tokenizer.vocab_size to {needed:,} or more, or to 0 to let the corpus decide.",
        )
    if isinstance(reading.alphabet, Counter):
        counts = reading.alphabet
        return Tokenizer(with_byte_fallback(library, counts, vocab_size=vocab_size, specials=all_specials))
    if normalisation == "auto" and reading.is_nfc and kind != "bytes":
        library.normalizer = blank(kind, running=running, lowercase=lowercase, normalisation="nfc").normalizer
    return Tokenizer(_rounded(library) if kind == "unigram" else library)


def _check_asked(kind: str, specials: Sequence[str], normalisation: str) -> None:
    """Refuse a kind, names of special tokens or a Unicode form that cannot be; `specials` are all, the four first."""
    if kind not in KINDS:
        raise UsageError(f"A vocabulary of kind '{kind}' cannot be learned from text.", did_you_mean(kind, KINDS))
    if kind == "sentencepiece" and normalisation not in ("auto", "none"):
        raise UsageError(
            f"tokenizer.normalisation = {normalisation} is not supported for the kind sentencepiece: the normaliser of such"
            " a model is a table of characters, and holds no Unicode form exactly.",
            "Set tokenizer.normalisation = none, or choose another tokenizer.kind.",
        )
    for special in specials[len(SPECIALS) :]:
        # Only such a name is cut to pieces by every kind, and so never met in a text.
        if not re.fullmatch(r"<\w+>", special) or specials.count(special) > 1:
            raise UsageError(f"'{special}' cannot be a special token.", "Give distinct names such as <mask>.")


def _needed(kind: str, library: tokenizers.Tokenizer, reading: "_Reading", *, n_specials: int) -> int:
    """How many tokens a vocabulary has at least: special ones, and those of its alphabet."""
    if kind == "wordpiece":
        return int(library.get_vocab_size())  # it takes the whole alphabet twice, to begin and to go on with
    if kind == "unigram":
        return n_specials + len({*reading.alphabet} - {" "} | {SPACE})
    return n_specials + {"bpe": 256, "bytes": 256, "sentencepiece": len(BYTES) + 1}.get(kind, 1)


def choose_vocab_size(texts: Iterable[str], *, kind: str = "bpe", specials: Sequence[str] = ()) -> int:
    """Return a good vocabulary size for a corpus: 1,000 to 32,000, in thousands; more where the alphabet needs it.

    Two thoughts. A subword needs examples to be learned from, so the size grows with the corpus, as the number of
    distinct words does: with the square root (Heaps' law). Ten times the root of the number of words, counted as 5.5
    characters each so that writing without spaces counts too, is 8,000 for the 29,000 pairs of Multi30k, and reaches
    the customary 32,000 with about ten million words. And a corpus of few distinct words, however long, needs no more
    subwords than words. Each distinct character takes a token of its own first.
    Reads no further than the answer needs. `specials` are those that `learn` will be asked for.
    """
    smallest, largest = 1_000, LARGEST
    uses = {"unigram": 1, "wordpiece": 2}.get(
        kind, 0
    )  # tokens that each character needs: to begin a word, and to go on
    n_characters = 0
    distinct: set[str] = set()
    alphabet: set[str] = set()
    for text in texts:
        n_characters += len(text)
        alphabet.update(text)
        if len(distinct) < largest:
            distinct.update(text.split())
        elif 10 * sqrt(n_characters / 5.5) >= largest and not uses:
            break
    by_size = 10 * sqrt(n_characters / 5.5)
    wanted = max(smallest, min(by_size, len(distinct))) + len(alphabet)
    needed = len(SPECIALS) + len(specials) + uses * (len(alphabet) + 1)
    return max(min(largest, int(wanted) // 1_000 * 1_000), ceil(needed / 1_000) * 1_000)


def has_words(texts: Iterable[str]) -> bool:
    """Whether a text is made of words that recur, by its first thousands.

    Spaces do not part words in Chinese, Japanese, Thai or proteins, and among names or codes hardly one recurs.
    """
    words: Counter[str] = Counter()
    n_unspaced = 0
    for text in islice(texts, 10_000):
        words.update(text.split())
        n_unspaced += 0 if text.isascii() else len(_UNSPACED.findall(text))
    n_words, n_once = words.total(), sum(count == 1 for count in words.values())
    n_characters = sum(len(word) * count for word, count in words.items())
    spaced = n_characters <= LONG_WORD * n_words and n_unspaced <= 0.2 * n_characters
    return spaced and n_once <= MOST_ONCE * n_words


class _Reading:
    """Passes texts on and remembers which characters they held, counted or not, and whether all were in NFC."""

    def __init__(self, texts: Iterable[str], alphabet: Counter[str] | set[str], *, lowercase: bool) -> None:
        self._texts = texts
        self._lowercase = lowercase
        self.alphabet = alphabet
        self.is_nfc = True

    def __iter__(self) -> Iterator[str]:
        for text in self._texts:
            self.alphabet.update(text.lower() if self._lowercase else text)
            self.is_nfc = self.is_nfc and unicodedata.is_normalized("NFC", text)
            yield text


def blank(kind: str, *, running: bool, lowercase: bool = False, normalisation: str = "none") -> tokenizers.Tokenizer:
    """Build the tokenizer of a kind, before it has learned anything."""
    front = [] if running else [decoders.Strip(" ", 1, 0)]  # takes away the space that was put in front
    if kind in ("bpe", "bytes"):
        library = tokenizers.Tokenizer(models.BPE())
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "bpe")
        library.decoder = decoders.ByteLevel()
        if kind == "bpe" and not running:
            library.decoder = decoders.Sequence([decoders.ByteLevel(), *front])
    elif kind in MARKED:
        library = tokenizers.Tokenizer(_marked_model(kind))
        # Each punctuation mark stands alone: so "##" can only mean "goes on", and no text becomes a special token.
        cuts = [pre_tokenizers.Split(SPACE, "merged_with_next"), pre_tokenizers.Punctuation("isolated")]
        if kind == "sentencepiece":
            # Lines stay apart too. No piece goes beyond a cut, and so SentencePiece, which makes none, gives the same ids.
            cuts.insert(1, pre_tokenizers.Split("\n", "isolated"))
        library.pre_tokenizer = pre_tokenizers.Sequence(cuts)
        whole = [decoders.Fuse(), decoders.Replace(SPACE, " "), *front]
        joined = [decoders.Replace(Regex("^##"), "")] if kind == "wordpiece" else []
        if kind == "sentencepiece":  # whose bytes are no marks of spaces, whatever they spell
            whole = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *front]
        library.decoder = decoders.Sequence(joined + whole)
    else:
        library = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
        if kind == "characters":
            library.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
            library.decoder = decoders.Fuse()
        else:
            library.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    if steps := _normalisers(kind, running=running, lowercase=lowercase, normalisation=normalisation):
        library.normalizer = normalizers.Sequence(steps) if len(steps) > 1 else steps[0]
    return library


def _marked_model(kind: str) -> models.Model:
    if kind == "unigram":
        return models.Unigram()
    if kind == "wordpiece":
        return models.WordPiece(unk_token="<unk>")
    return models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def _normalisers(kind: str, *, running: bool, lowercase: bool, normalisation: str) -> list[normalizers.Normalizer]:
    """What is done to a text before it is cut: its form and case, then what becomes of spaces."""
    steps: list[normalizers.Normalizer] = [getattr(normalizers, one)() for one in FORMS if one.lower() == normalisation]
    if lowercase:
        steps.append(normalizers.Lowercase())
    if kind in SPACED and not running:
        steps.append(normalizers.Prepend(" " if kind == "bpe" else SPACE))
    if kind in MARKED:
        steps.append(normalizers.Replace(" ", SPACE))
    return steps


def with_lowercase(tokenizer: Tokenizer, lowercase: bool) -> Tokenizer:
    """Return a tokenizer of the same tokens that lower-cases text, or does not."""
    form, running = tokenizer.normalisation, not tokenizer.spaced
    like = blank(tokenizer.kind, running=running, lowercase=lowercase, normalisation=form)
    file = json.loads(tokenizer.to_json())
    file["normalizer"] = json.loads(like.to_str())["normalizer"]
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(file)))


def _trainer(kind: str, *, vocab_size: int, specials: list[str], min_frequency: int) -> trainers.Trainer:
    """Return what fills the tokenizer of a kind with tokens."""
    common: dict[str, Any] = {"vocab_size": vocab_size, "special_tokens": specials, "show_progress": False}
    if kind in ("bpe", "bytes"):
        alphabet = sorted(byte_symbols())
        if kind == "bytes":
            common["vocab_size"] = len(specials) + len(alphabet)
        return trainers.BpeTrainer(**common, initial_alphabet=alphabet, min_frequency=2)
    if kind == "sentencepiece":
        # More than is asked for: merges of characters that then are no pieces fall out.
        return trainers.BpeTrainer(**{**common, "vocab_size": 2 * vocab_size}, min_frequency=2)
    if kind == "unigram":
        return trainers.UnigramTrainer(**common, unk_token="<unk>")
    if kind == "wordpiece":
        return trainers.WordPieceTrainer(**common, min_frequency=2)
    return trainers.WordLevelTrainer(**common, min_frequency=min_frequency)


def _rounded(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Round a unigram tokenizer's scores to six decimals: longer ones change on the library's way through a file."""
    file = json.loads(library.to_str())
    file["model"]["vocab"] = [[token, round(score, 6)] for token, score in file["model"]["vocab"]]
    return tokenizers.Tokenizer.from_str(json.dumps(file))
