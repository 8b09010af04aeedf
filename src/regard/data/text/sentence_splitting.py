"""Sentence splitting: text that is too long for a model, cut between lines and sentences, else clauses, else words."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Span = tuple[int, int]  # of a text, from its start to below its end
Fits = Callable[[str], bool]
Ends = Callable[[str], Iterator[int]]

# Marks that end a sentence where space and the beginning of another follow, and those that no other sign resembles.
_CLOSING = r"(?:[\"'”“’‘»«›‹)\]}）」』】》〉〕]|\s[»›](?=\s))*"
_OPENING = r"[\"'“”„‘‚’«»‹›(\[{¿¡–—\-•*$€£#]*"
FULL_STOPS = "。！？｡．؟۔।॥։።፧။។᠃\u037e"
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_UNSPACED = re.compile(rf"[{_CJK}\u3000-\u303f\uff01-\uff60]")  # there no space stands between words
_SENTENCE_END = re.compile(  # a row of marks is tried from its first alone: from each, dot leaders would take hours
    rf"(?<![.!?…])(?P<mark>[.!?…]++)(?P<closing>{_CLOSING})\s+(?={_OPENING}\s?(?P<first>[^\W_]))"
    rf"|[{FULL_STOPS}]+[\"'”’»›)\]）」』】》〉〕]*\s*"
    rf"|(?<![!?])[!?]++(?=[{_CJK}])"
)
_CLAUSE_END = re.compile(r"[,;:–—،؛](?:\s+|$)|(?<=\w)—|[、，；：]\s*")
_WORD_END = re.compile(r"\s+")

# Abbreviations: some stand before a name, some before a number, some inside a sentence.
TITLES = (
    "Dr|Mr|Mrs|Ms|Mx|Prof|St|Ste|Hr|Hrn|Fr|Frl|Sr|Sra|Srta|Mme|Mlle|MM|Dott|Sig|Gen|Col|Lt|Capt|Cpt|Sgt|Maj|Cmdr|Rev|Hon"
    "|Gov|Sen|Rep|Pres|Mt|Messrs|Ing|Dipl"
)
_BEFORE_NUMBER = re.compile(
    "nos?|nrn?|figs?|abb|tab|vols?|bd|art|kap|abs|abschn|pp|ss|eqs?|sec|ch|tel|str"
    "|jan|feb|mar|mär|apr|jun|jul|aug|sept?|oct|okt|nov|dec|dez"
)
INSIDE = "vs|cf|ca|al|bzw|vgl|evtl|ggf|inkl|exkl|zzgl|sog|approx|viz|resp|einschl|insb|dgl"
_TITLE, _INSIDE = re.compile(TITLES), re.compile(INSIDE)
_LETTERS = re.compile(r"[^\W\d_]|[^\W\d_]{1,2}(?:\.[^\W\d_]{1,2})+")  # an initial, U.S, e.g, z.B, Ph.D
_ORDINAL = re.compile(r"\d{1,2}")  # "am 3. Mai", and the numbers of a list


def split_to_fit(text: str, *, fits: Fits, usual: Fits) -> list[Span]:
    """Cut a text at its line ends, and each line that is too long into parts, white space around them left out.

    usual: whether a part is of a length that the model has learned from. Sentences stay together as far as that.
    fits:  whether the model can read a part. A sentence is cut, at its clauses or between words, only where it does not.
    """
    spans: list[Span] = []
    start = 0
    for line in text.splitlines(keepends=True):
        span = start, start + len(line)
        start += len(line)
        finer: list[Ends] = [_clause_ends, _word_ends]
        spans += [span] if usual(line.strip()) else _pack(text, _cut(text, span, _sentence_ends), finer, fits, usual)
    return [stripped for span in spans if (stripped := _strip(text, span))]


def count_sentences(text: str) -> int:
    """How many sentences there are in a text."""
    return len(_cut(text, (0, len(text.rstrip())), _sentence_ends)) if text.strip() else 0


def separator(gap: str, source: str, output: str) -> str:
    """What stands between the outputs of two parts: what stood between these, but for spaces that only one script has.

    gap:             what stood between the parts
    source, output:  the character before it in the text, and the last of the output
    """
    if len(f"{gap}.".splitlines()) > 1 or not (gap or _UNSPACED.fullmatch(source)):
        return gap  # line breaks, and nothing inside a word
    return "" if _UNSPACED.fullmatch(output) else gap or " "


def _pack(text: str, pieces: list[Span], finer: Sequence[Ends], fits: Fits, usual: Fits) -> list[Span]:
    """Put neighbours together while that is of a usual length; cut at finer ends what does not fit by itself."""
    parts: list[Span] = []
    for start, end in pieces:
        if parts and usual(text[parts[-1][0] : end].strip()):
            parts[-1] = parts[-1][0], end
        elif fits(text[start:end].strip()):
            parts.append((start, end))
        elif finer:
            parts += _pack(text, _cut(text, (start, end), finer[0]), finer[1:], fits, usual)
        else:
            parts += _halve(text, (start, end), fits)
    return parts


def _halve(text: str, span: Span, fits: Fits) -> list[Span]:
    """Cut one endless word anywhere."""
    start, end = span
    if end - start == 1 or fits(text[start:end].strip()):
        return [span]
    middle = (start + end) // 2
    return _halve(text, (start, middle), fits) + _halve(text, (middle, end), fits)


def _cut(text: str, span: Span, ends: Ends) -> list[Span]:
    """Cut behind each end; the pieces make up the span."""
    start, end = span
    places = [start + place for place in ends(text[start:end]) if 0 < place < end - start]
    return list(pairwise([start, *places, end]))


def _sentence_ends(text: str) -> Iterator[int]:
    """Where sentences end, the space behind them counted."""
    uncased = text == text.lower()  # then a small letter says nothing
    for match in _SENTENCE_END.finditer(text):
        if match["mark"] is None or _ends_sentence(text, match, uncased=uncased):
            yield match.end()


def _ends_sentence(text: str, match: re.Match[str], *, uncased: bool) -> bool:
    """Tell the end of a sentence from an abbreviation, an ordinal number, and a mark inside a sentence."""
    first = match["first"]
    if first != first.title() and not uncased:  # a small letter; scripts without capitals have none
        return False
    if match["mark"] != "." or match["closing"]:
        return True
    word = re.split(r"[\s\"'(\[„“«‚‘/-]", text[max(0, match.start() - 40) : match.start()])[-1]
    small = word.lower()
    if _TITLE.fullmatch(word.title() if uncased else word) or _INSIDE.fullmatch(small) or _ORDINAL.fullmatch(word):
        return False
    if _LETTERS.fullmatch(word) and word != "I":
        return False
    return not (first.isdigit() and _BEFORE_NUMBER.fullmatch(small))


def _clause_ends(text: str) -> Iterator[int]:
    return (match.end() for match in _CLAUSE_END.finditer(text))


def _word_ends(text: str) -> Iterator[int]:
    return (match.end() for match in _WORD_END.finditer(text))


def _strip(text: str, span: Span) -> Span | None:
    """The span without white space at its ends; None where it holds nothing else."""
    start, end = span
    part = text[start:end]
    return (start + len(part) - len(part.lstrip()), start + len(part.rstrip())) if part.strip() else None
