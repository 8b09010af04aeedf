"""The tokenizer that a config asks for: brought along as a file, or learned from the texts of the corpus."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from regard.config import TokenizerConfig
from regard.data.formats.tiktoken import read_tiktoken
from regard.data.pipeline.source import Progress
from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import choose_vocab_size, learn
from regard.errors import ConfigError


def learned_tokenizer(
    config: TokenizerConfig,
    texts: Callable[[], Iterable[str]],
    progress: Progress,
    *,
    running: bool = False,
    specials: Sequence[str] = (),
) -> Tokenizer:
    """Return a tokenizer learned from texts, which are called for each reading of the corpus.

    running:   whether texts are the passages of running text, and not sentences
    specials:  tokens that are needed beside the four of every vocabulary, as <mask>
    """
    progress("learning the vocabulary", 0)
    size = config.vocab_size or choose_vocab_size(texts(), kind=config.kind, specials=specials)
    return learn(texts(), kind=config.kind, vocab_size=size, specials=specials, running=running)


def check_specials(tokenizer: Tokenizer, specials: Sequence[str]) -> None:
    """Refuse a vocabulary that was learned without tokens that are needed."""
    for special in specials:
        if special not in tokenizer.specials:
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
    # The default says nothing: nobody can tell it from a kind that was asked for.
    if config.kind not in (tokenizer.kind, TokenizerConfig().kind):
        raise ConfigError(
            f"tokenizer.kind is {config.kind}, and the vocabulary of {config.file} is of kind {tokenizer.kind}.",
            "Leave tokenizer.kind out where tokenizer.file is given.",
        )
    return tokenizer
