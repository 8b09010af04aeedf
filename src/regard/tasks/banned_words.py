"""Words that a translation must not hold, as rules on tokens.

A word is banned as a sequence of tokens, not token by token: the pieces of "Hundehütte" stay free for other words. It has
two spellings, with a space in front and without one, as behind a bracket; the second counts only where no letter stands
before, since the "und" of "Hund" is another word.

What is lost too are words that begin with all the tokens of a banned one: when they have been written, nobody knows how
the word will end. And what is not caught is a word spelt by other tokens than the tokenizer takes, which a model has
never seen; nor, in a vocabulary of tiktoken, one whose first letters share a token with a bracket or a quotation mark.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.text.tokenizer import Tokenizer
from regard.decoding.rules import Banned, BannedSequences, Rule


def banning(texts: Sequence[str], tokenizer: Tokenizer) -> list[Rule]:
    """Return the rules by which none of the texts (words, phrases, punctuation marks) is written."""
    anywhere: set[tuple[int, ...]] = set()
    not_inside: set[tuple[int, ...]] = set()
    for text in filter(None, map(str.strip, texts)):
        for ids in _spellings(text, tokenizer):
            (not_inside if _continues(text, ids, tokenizer) else anywhere).add(ids)
    rules: list[Rule] = []
    if single := [ids[0] for ids in anywhere if len(ids) == 1]:
        rules.append(Banned(tuple(sorted(single))))
    if several := [ids for ids in anywhere if len(ids) > 1]:
        rules.append(BannedSequences(sorted(several)))
    if not_inside:
        rules.append(BannedSequences(sorted(not_inside), unless_after=_letters(tokenizer)))
    return rules


def _spellings(text: str, tokenizer: Tokenizer) -> set[tuple[int, ...]]:
    """Return a text's tokens where a space stands before it, and where something else does.

    Texts with an unknown part have none: they cannot be written anyway.
    """
    if tokenizer.spaced:
        found = {tuple(tokenizer.encode(text))}
        # A character of another kind, so that no token spans it and the text.
        behind = tokenizer.pieces(("(" if text[0].isalnum() else "a") + text)
        if any(piece.start == 1 for piece in behind):
            found.add(tuple(piece.id for piece in behind if piece.start > 0))
    else:
        found = {tuple(tokenizer.encode(" " + text)), tuple(tokenizer.encode(text))}
    return {ids for ids in found if ids and tokenizer.unknown_id not in ids}


def _continues(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Say whether these tokens, right behind a letter, would belong to its word."""
    return tokenizer.kind != "words" and text[0].isalnum() and not tokenizer.piece_text(ids[0]).startswith(" ")


def _letters(tokenizer: Tokenizer) -> Tensor:
    """Say of every token whether it ends with a letter or a digit; (V,)."""
    texts = map(tokenizer.piece_text, range(tokenizer.vocab_size))
    # A lone byte, "⟨C3⟩", is part of a letter more often than of a quotation mark.
    return torch.tensor([text[-1:].isalnum() or text.endswith("⟩") for text in texts])
