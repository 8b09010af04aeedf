"""Vocabularies of tiktoken: its ids for any text, files that keep them, and what is wrong with a file, by line."""

import base64
import gzip
import importlib.util
import os
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from regard.data.formats.tiktoken import KNOWN, KnownVocabulary, read_tiktoken
from regard.data.text.roles import SPECIALS
from regard.data.text.tokenizer import Piece, Tokenizer
from regard.errors import DataError, UsageError

BYTES = [bytes([byte]) for byte in range(256)]
# " the" is made of " t" and "he"; "ogs" of "og" and "s", for "gs" comes too late.
MERGED = [b"he", b" t", b" the", b"og", b" d", b" dog", b"ogs", b"gs", b"\xc3\x9f", b"The", b"!!", b"\n\n", b"  "]
TOKENS = [*BYTES, *MERGED]
PATTERN = {one.name: one.pattern for one in KNOWN}
REMEDY = "\nIs this a file of tiktoken, as cl100k_base.tiktoken is, and complete?"

quick = settings(max_examples=60, deadline=None)
real_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
AWKWARD = [
    *("<pad>", "<", "<|endoftext|>", "'", "'s", "'S", "'LL", "'ſ", "don't", "AbcDEF", "12345", "½", "٣"),
    *("Straße", "ǅ", "ʰ", "e\u0301", "\u0301", "漢字", "हिन्दी", "👩‍👩‍👧", "/", "//\n", "...", "Ġ", " the", "dogs"),
    *(" ", "  ", "\n", "\r\n", "\t", "\u2028", "\u0085", "\u00a0", "\u3000", "\x00", "\ufeff"),
]
awkward_text = st.lists(st.sampled_from(AWKWARD)).map("".join)


def lines_of(tokens: Sequence[bytes]) -> list[bytes]:
    return [base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)]


def known(
    n_ranks: int, *, pattern: str = PATTERN["cl100k_base"], reserved: Mapping[int, str] | None = None
) -> list[KnownVocabulary]:
    return [KnownVocabulary(name="tiny", n_ranks=n_ranks, pattern=pattern, reserved=reserved or {})]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiktoken")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Tokenizer:
    (folder / "tiny.tiktoken").write_bytes(b"".join(lines_of(TOKENS)))
    return read_tiktoken(folder / "tiny.tiktoken", known=known(len(TOKENS)))


def test_tokens_have_their_ranks_as_ids(tiny: Tokenizer) -> None:
    ids = {token: rank for rank, token in enumerate(TOKENS)}
    assert tiny.encode("The dogs!!") == [ids[one] for one in (b"The", b" dog", b"s", b"!!")]
    assert tiny.encode("dogs") == [ids[b"d"], ids[b"ogs"]]
    assert tiny.encode("the") == [ids[b"t"], ids[b"he"]], "no space is put in front"
    assert tiny.encode(" the dog") == [ids[b" the"], ids[b" dog"]]
    # A whole piece of text that is a token needs no merges.
    assert tiny.encode("gs") == [ids[b"gs"]]
    assert tiny.encode("") == []


def test_special_tokens_follow_the_last_rank(tiny: Tokenizer) -> None:
    n = len(TOKENS)
    assert (tiny.pad_id, tiny.start_id, tiny.end_id, tiny.unknown_id) == (n, n + 1, n + 2, n + 3)
    assert tiny.vocab_size == n + 4
    assert list(tiny.vocabulary.values()) == list(range(n + 4))
    assert [tiny.piece_text(id) for id in range(n, n + 4)] == list(SPECIALS)
    assert tiny.decode([n + 1, *tiny.encode("the dog"), n + 2, n, n]) == "the dog"
    with pytest.raises(UsageError, match=r"^There is no special token '<mask>'\."):
        tiny.id_of("<mask>")


@quick
@given(text=real_text | awkward_text)
def test_every_text_is_given_back_and_never_becomes_a_special_token(tiny: Tokenizer, text: str) -> None:
    ids = tiny.encode(text)
    assert tiny.decode(ids) == text
    assert max(ids, default=0) < len(TOKENS)
    assert (tiny.kind, tiny.lossless, tiny.loss) == ("tiktoken", True, "")
    reached = 0
    for piece in tiny.pieces(text):
        assert piece.text == text[piece.start : piece.end]
        assert piece.start in (reached, max(reached - 1, 0))
        reached = piece.end
    assert reached == len(text)


def test_pieces_and_words(tiny: Tokenizer) -> None:
    assert tiny.pieces(" the ß")[0] == Piece(tiny.encode(" the")[0], " the", 0, 4)
    assert [(p.text, p.start, p.end) for p in tiny.pieces("ä dog")] == [("ä", 0, 1), ("ä", 0, 1), (" dog", 1, 5)]
    assert [tiny.piece_text(id) for id in tiny.encode("The dogß")] == ["The", " dog", "ß"]
    assert [tiny.piece_text(id) for id in tiny.encode("ж")] == ["⟨D0⟩", "⟨B6⟩"]
    assert tiny.words("The dogs run") == [0, 1, 1, 2, 2, 2, 2]


def test_files_keep_the_ids_and_others_read_them(tiny: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "shared.json"
    tiny.save(path)
    again, others = Tokenizer.load(path), tokenizers.Tokenizer.from_file(str(path))
    assert (again.kind, again.pad_id, again.to_json()) == ("tiktoken", len(TOKENS), tiny.to_json())
    for text in ("The dogs!!  \n\nthe Straße", "gs 12345", "<pad>the"):
        assert again.encode(text) == tiny.encode(text)
        assert again.pieces(text) == tiny.pieces(text)
    assert others.encode("The dogs!!").ids == tiny.encode("The dogs!!")


def test_ids_between_the_ranks_may_be_reserved(tmp_path: Path) -> None:
    """As p50k_base keeps 50,256 for <|endoftext|>."""
    path = tmp_path / "reserved.tiktoken"
    path.write_bytes(b"".join(lines_of(BYTES)) + b"aGU= 257\n")
    tokenizer = read_tiktoken(path, known=known(257, reserved={256: "<|endoftext|>"}))
    assert tokenizer.encode("he<|endoftext|>")[0] == 257
    assert 256 not in tokenizer.encode("<|endoftext|>")
    assert (tokenizer.id_of("<|endoftext|>"), tokenizer.pad_id, tokenizer.vocab_size) == (256, 258, 262)
    assert tokenizer.piece_text(256) == "<|endoftext|>"


def merged_by_tiktoken(text: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """What tiktoken does, in its own words: of all neighbours that make up a token the lowest rank, the first place."""
    parts = [text] if text in ranks else [bytes([byte]) for byte in text]
    while found := [(ranks[a + b], place) for place, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]:
        _, place = min(found)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return [ranks[part] for part in parts]


letters = st.text(alphabet="ab", min_size=2, max_size=5) | st.text(alphabet="abc", min_size=2, max_size=4)


@quick
@given(
    merged=st.lists(letters, unique=True, min_size=1, max_size=12),
    texts=st.lists(st.text(alphabet="abc", min_size=1, max_size=24), min_size=5, max_size=5),
)
def test_merging_is_that_of_tiktoken(folder: Path, merged: list[str], texts: list[str]) -> None:
    """Also for tokens that no merges of lower rank lead to."""
    tokens = [*BYTES, *(token.encode() for token in merged)]
    (folder / "drawn.tiktoken").write_bytes(b"".join(lines_of(tokens)))
    tokenizer = read_tiktoken(folder / "drawn.tiktoken", known=known(len(tokens), pattern=r"[\s\S]+"))
    ranks = {token: rank for rank, token in enumerate(tokens)}
    assert tokenizer.encode_batch(texts) == [merged_by_tiktoken(text.encode(), ranks) for text in texts]


SPLITS_OF_TIKTOKEN = {
    "r50k_base": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k_base": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s",
}


@pytest.mark.parametrize("name", SPLITS_OF_TIKTOKEN)
@quick
@given(text=awkward_text)
@example(text="a\n\t")  # white space at the end is one piece, whatever lines it holds
def test_text_is_cut_where_tiktoken_cuts_it(name: str, text: str) -> None:
    regex = pytest.importorskip("regex")
    cut = pre_tokenizers.Split(Regex(PATTERN[name]), "isolated").pre_tokenize_str(text)
    assert [part for part, _ in cut] == regex.findall(SPLITS_OF_TIKTOKEN[name], text)


# -- the errors people meet ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "content", "problem"),
    [
        (3, b"", "line 3: expected rank 2, found 3"),  # the line is lost: a gap
        (3, b"Ag== 7\n", "line 3: expected rank 2, found 7"),
        (3, b"Ag== 1\n", "line 3: expected rank 2, found 1"),
        (257, b"AQ== 256\n", "line 257: the token of line 2 stands here again"),
        (4, b"A*== 3\n", "line 4: 'A*==' is not base64"),
        (4, b"Aw= 3\n", "line 4: 'Aw=' is not base64"),
        (4, b"\xff\xff 3\n", "line 4: '\ufffd\ufffd' is not base64"),
        (4, b"Aw==\n", "line 4: expected a token in base64 and its rank, as in 'IQ== 0', found 'Aw=='"),
        (4, b"Aw== three\n", "line 4: expected a token in base64 and its rank, as in 'IQ== 0', found 'Aw== three'"),
        (4, b"Aw== -3\n", "line 4: expected a token in base64 and its rank, as in 'IQ== 0', found 'Aw== -3'"),
        (
            4,
            b"Aw== " + b"9" * 5000 + b"\n",
            f"line 4: expected a token in base64 and its rank, as in 'IQ== 0', found 'Aw== {'9' * 35}'",
        ),
        (1, b"A dog runs.\n", "line 1: expected a token in base64 and its rank, as in 'IQ== 0', found 'A dog runs.'"),
    ],
)
def test_wrong_lines_are_named(line: int, content: bytes, problem: str, tmp_path: Path) -> None:
    lines = lines_of(TOKENS)
    lines[line - 1] = content
    if not content:
        del lines[line - 1]
    path = tmp_path / "wrong.tiktoken"
    path.write_bytes(b"".join(lines))
    with pytest.raises(DataError) as caught:
        read_tiktoken(path, known=known(len(TOKENS)))
    assert str(caught.value) == f"{path}, {problem}." + REMEDY


def test_a_byte_without_a_token(tmp_path: Path) -> None:
    path = tmp_path / "wrong.tiktoken"
    path.write_bytes(b"".join(lines_of([token for token in TOKENS if token != b"\xc3"])))
    with pytest.raises(DataError) as caught:
        read_tiktoken(path, known=known(len(TOKENS) - 1))
    problem = "the byte C3 has no token, and so not every text could be written."
    assert str(caught.value) == f"{path}: {problem}" + REMEDY


def test_a_number_of_ranks_that_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "own.tiktoken"
    path.write_bytes(b"".join(lines_of(TOKENS)) + b"\n")
    with pytest.raises(DataError) as caught:
        read_tiktoken(path)
    assert str(caught.value) == (
        f"{path}: a vocabulary of 269 ranks is not known, nor the pattern by which it cuts text.\nGive the file of one"
        " of these: r50k_base (50,256), p50k_base (50,280), cl100k_base (100,256), o200k_base (199,998)."
    )


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty.tiktoken"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_tiktoken(path)
    assert str(caught.value) == f"{path}: the file is empty.\nCheck the step that wrote it."


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "cl100k_base.tiktoken").write_bytes(b"IQ== 0\n")
    path = tmp_path / "cl10k_base.tiktoken"
    with pytest.raises(DataError) as caught:
        read_tiktoken(path)
    assert str(caught.value) == f"{path}: there is no such file.\nDid you mean {tmp_path}/cl100k_base.tiktoken?"


def test_packed_files(tiny: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tiny.tiktoken.gz"
    packed = gzip.compress(b"".join(lines_of(TOKENS)))
    path.write_bytes(packed)
    assert read_tiktoken(path, known=known(len(TOKENS))).to_json() == tiny.to_json()
    path.write_bytes(packed[:-20])
    with pytest.raises(DataError, match="damaged or incomplete gzip data"):
        read_tiktoken(path, known=known(len(TOKENS)))


# -- the real one -------------------------------------------------------------------------------------------------------


def cl100k_base() -> Path:
    """The file that most people have somewhere, under the name that tiktoken's cache gives it; nothing is downloaded."""
    if "REGARD_CL100K" in os.environ:
        return Path(os.environ["REGARD_CL100K"])
    litellm = importlib.util.find_spec("litellm")
    packages = (litellm and litellm.submodule_search_locations) or []
    folders = [Path(package) / "litellm_core_utils" / "tokenizers" for package in packages]
    folders += [Path(os.environ[name]) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") if os.environ.get(name)]
    folders += [Path(tempfile.gettempdir()) / "data-gym-cache"]
    for folder in folders:
        if (path := folder / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").is_file():
            return path
    return pytest.skip(
        "There is no cl100k_base here: set REGARD_CL100K to cl100k_base.tiktoken, which lies at"
        " https://openaipublic.blob.core.windows.net/encodings/, or install litellm, which brings it."
    )


def test_cl100k_base_gives_the_ids_of_tiktoken() -> None:
    tokenizer = read_tiktoken(cl100k_base())
    assert (tokenizer.vocab_size, tokenizer.pad_id, tokenizer.unknown_id) == (100_260, 100_256, 100_259)
    # As tiktoken 0.14 encodes them.
    expected = {
        "Once upon a time": [12805, 5304, 264, 892],
        "DON'T  stop\r\n\r\n at 12345!": [85741, 17773, 220, 3009, 881, 520, 220, 4513, 1774, 0],
        "Die Straße; naïve 漢字": [18674, 27745, 24352, 26, 95980, 588, 6704, 120, 95, 19113],
        "<|endoftext|><pad>": [27, 91, 8862, 728, 428, 91, 1822, 13545, 29],
        "   \n  x   ": [5996, 220, 865, 262],
    }
    assert {text: tokenizer.encode(text) for text in expected} == expected
    assert all(tokenizer.decode(ids) == text for text, ids in expected.items())
    assert [piece.text for piece in tokenizer.pieces("Once upon a time")] == ["Once", " upon", " a", " time"]
