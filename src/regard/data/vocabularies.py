"""The tokenizer that a config asks for: brought along as a file, or learnt from the texts of the corpus."""

from collections.abc import Callable, Iterable

from regard.config import TokenizerConfig
from regard.data.tiktoken_files import read_tiktoken
from regard.data.token_learning import choose_vocab_size, learn
from regard.data.tokenizers import Tokenizer
from regard.errors import ConfigError


def tokenizer_for(config: TokenizerConfig, texts: Callable[[], Iterable[str]], *, running: bool = False) -> Tokenizer:
    """Return the tokenizer; `texts` is called for each reading of the corpus, and not where a file is given.

    running: whether texts are the passages of running text, and not sentences.
    """
    given = given_tokenizer(config)
    if given is not None:
        return given
    size = config.vocab_size or choose_vocab_size(texts(), kind=config.kind)
    return learn(texts(), kind=config.kind, vocab_size=size, running=running)


def given_tokenizer(config: TokenizerConfig) -> Tokenizer | None:
    """Return the tokenizer that is brought along, if any: one for all text, with the size and the kind that it has."""
    if not config.file:
        if config.kind == "tiktoken":
            raise ConfigError(
                "A vocabulary of kind tiktoken is brought along, not learnt.",
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
    tokenizer = Tokenizer.load(config.file) if config.file.endswith(".json") else read_tiktoken(config.file)
    # The default says nothing: nobody can tell it from a kind that was asked for.
    if config.kind not in (tokenizer.kind, TokenizerConfig().kind):
        raise ConfigError(
            f"tokenizer.kind is {config.kind}, and the vocabulary of {config.file} is of kind {tokenizer.kind}.",
            "Leave tokenizer.kind out where tokenizer.file is given.",
        )
    return tokenizer
