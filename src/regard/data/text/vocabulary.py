"""The tokenizer that a config asks for: brought along as a file, or learned from the texts of the corpus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from regard.config import AS_SAVED, TokenizerConfig
from regard.data.formats.tiktoken import read_tiktoken
from regard.data.pipeline.dataset import Notes
from regard.data.pipeline.source import Progress
from regard.data.text.letter_case import LetterCase
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import (
    KINDS,
    LARGEST,
    choose_vocab_size,
    has_words,
    learn,
    with_lowercase,
)
from regard.errors import ConfigError


def learned_tokenizer(
    config: TokenizerConfig,
    texts: Callable[[], Iterable[str]],
    progress: Progress,
    *,
    sides: Callable[[], Iterable[Sequence[str]]] | None = None,
    running: bool = False,
    specials: Sequence[str] = (),
    only_read: bool = False,
) -> Tokenizer:
    """Return a tokenizer learned from texts, which are called for each reading of the corpus.

    sides:      the same texts, those of one example together, where they are of two sides
    running:    whether texts are the passages of running text, and not sentences
    specials:   tokens that are needed beside the four of every vocabulary, as <mask>
    only_read:  whether something is said of each text as a whole. Few texts teach more by words than by pieces, of which
                a word that was never met leaves some that were hardly trained; words that occur once teach <unk>
    """
    progress("learning the vocabulary", 0)
    kind = config.kind
    if kind == "auto":
        kind = "words" if config.vectors or (only_read and has_words(texts())) else "bpe"
    letters = LetterCase()
    # One reading for both, as far as both need it.
    reading = letters.watched(sides() if sides is not None else ((text,) for text in texts()))
    read = (text.lower() for text in reading) if config.lowercase is True else reading
    all_words = only_read and kind == "words"
    size = config.vocab_size or (LARGEST if all_words else choose_vocab_size(read, kind=kind, specials=specials))
    return learn(
        texts(),
        kind=kind,
        vocab_size=size,
        min_frequency=2 if all_words and not (config.vocab_size or config.vectors) else 1,
        specials=specials,
        running=running,
        lowercase=letters.of_all(reading) if config.lowercase == "auto" else config.lowercase is True,
        normalisation=config.normalisation,
    )


def fitted_tokenizer(
    config: TokenizerConfig, given: Tokenizer, sides: Callable[[], Iterable[Sequence[str]]]
) -> Tokenizer:
    """Return a tokenizer that was brought along, lower-casing text if this run is to: as asked, else as its own text is.

    What another run has learned from may have had other capitals.
    """
    lowercase = config.lowercase
    if lowercase == "auto" and given.kind in KINDS:
        letters = LetterCase()
        lowercase = letters.of_all(letters.watched(sides()))
    if lowercase in ("auto", AS_SAVED, given.lowercase):
        return given
    if given.kind not in KINDS:
        raise _own_case(given, bool(lowercase))
    return with_lowercase(given, bool(lowercase))


def case_notes(config: TokenizerConfig, tokenizers: Mapping[str, Tokenizer]) -> Notes:
    """Note that text is lower-cased, and why; tokenizers are by the side that each is of, or one for all by ""."""
    sides = [side for side, tokenizer in tokenizers.items() if tokenizer.lowercase]
    if not sides:
        return ()
    if config.lowercase is True:
        return (("lower case", "all text is lower-cased, input and output (tokenizer.lowercase)"),)
    of_side = f" of the {sides[0]}" if len(sides) < len(tokenizers) else ""
    consequence = "output has no capitals" if sides == ["target"] else "input is lower-cased too"
    return (("lower case", f"training text{of_side} is lower-cased: {consequence}"),)


def check_specials(tokenizer: Tokenizer, specials: Sequence[str]) -> None:
    """Refuse a vocabulary that was learned without tokens that are needed."""
    for special in specials:
        if not tokenizer.has_special(special):
            raise ConfigError(
                f"The vocabulary has no token {special}: it was learned for another task.",
                "Take that of a run of the same task, or let a new one be learned.",
            )


def given_tokenizer(config: TokenizerConfig) -> Tokenizer | None:
    """Return the tokenizer that is brought along, if any: one for all text, with the size and the kind that it has."""
    if not config.file:
        if config.kind == "tiktoken":
            raise ConfigError(
                "A vocabulary of kind tiktoken is brought along, not learned.",
                "Set tokenizer.file to a file such as cl100k_base.tiktoken, or choose another tokenizer.kind.",
            )
        return None
    if not config.shared:
        raise ConfigError(
            "tokenizer.file brings one vocabulary, which source and target share.",
            "Set tokenizer.shared = true, or leave tokenizer.file out.",
        )
    if config.vocab_size:
        raise ConfigError(
            f"tokenizer.file has a size of its own, and tokenizer.vocab_size asks for {config.vocab_size:,}.",
            "Set tokenizer.vocab_size = 0, or leave tokenizer.file out.",
        )
    file = Path(config.file).resolve()  # which is one's own, and may be a link
    tokenizer = Tokenizer.load(file) if file.suffix == ".json" else read_tiktoken(config.file)
    if config.kind not in (tokenizer.kind, "auto"):
        raise ConfigError(
            f"tokenizer.kind is {config.kind}, and the vocabulary of {config.file} is of kind {tokenizer.kind}.",
            "Leave tokenizer.kind out where tokenizer.file is given.",
        )
    if config.normalisation not in ("auto", tokenizer.normalisation):
        raise ConfigError(
            f"tokenizer.normalisation is {config.normalisation}, and that of {config.file} is {tokenizer.normalisation}.",
            "Leave tokenizer.normalisation out where tokenizer.file is given.",
        )
    if config.lowercase is True and tokenizer.kind not in KINDS and not tokenizer.lowercase:
        raise _own_case(tokenizer, True)
    return tokenizer


def _own_case(tokenizer: Tokenizer, lowercase: bool) -> ConfigError:
    """What is said where a vocabulary that others have learned is to read capitals otherwise than it does."""
    reads = "lower-cases text" if tokenizer.lowercase else "reads text as it stands"
    return ConfigError(
        f"tokenizer.lowercase is {str(lowercase).lower()}, and a vocabulary of kind {tokenizer.kind} {reads}.",
        "Leave tokenizer.lowercase out, or lower-case the files." if lowercase else "Leave tokenizer.lowercase out.",
    )
