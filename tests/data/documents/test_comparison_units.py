"""The same stretches of a text for every vocabulary."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig
from regard.data.documents import rows
from regard.data.documents.comparison_units import DOCUMENTS, STRETCH, Stretches, read_stretches
from regard.data.documents.dataset import encode_documents
from regard.data.text.tokenizer_training import learn

TEXTS = ["Der Hund läuft – 日本語 – nach Hause.\n" * 9, "Kurz.", "Ein Baum\n\nund noch einer. " * 20]
KINDS = ["bpe", "bytes", "characters", "unigram", "wordpiece", "words"]


def write(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def read(file: str, kind: str, n_documents: int) -> tuple[Stretches, list[int], int]:
    """The stretches, the tokens as they were encoded, and the id of the end token."""
    tokenizer = learn(TEXTS, kind=kind, vocab_size=400, running=True)
    corpus = encode_documents([file], DataConfig(), tokenizer, progress=lambda what, done: None)
    found = read_stretches([file], DataConfig(), tokenizer, n_documents=n_documents)
    return found, corpus.ragged["ids"].values.tolist(), tokenizer.end_id


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [rows.PASSAGE_CHARACTERS, 40])
def test_every_token_that_is_predicted_has_its_stretch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: int
) -> None:
    monkeypatch.setattr(rows, "PASSAGE_CHARACTERS", size)
    monkeypatch.setattr("regard.data.documents.comparison_units.STRETCH", 50)
    file = tmp_path / "a.txt"
    file.write_text("\n<|>\n".join(TEXTS))
    tokenizer = learn(TEXTS, kind=kind, vocab_size=400, running=True)
    data = DataConfig(separator="<|>")
    corpus = encode_documents([str(file)], data, tokenizer, progress=lambda what, done: None)
    found = read_stretches([str(file)], data, tokenizer, n_documents=3)
    ids = corpus.ragged["ids"].values
    assert len(found.members) == len(ids) - 1
    assert (np.diff(found.members) >= 0).all()
    whole = [text + "\n" if number < 2 else text for number, text in enumerate(TEXTS)]
    expected = [text[start : start + 50] for text in whole for start in range(0, len(text), 50)]
    assert found.n_bytes.tolist() == [len(text.encode()) for text in expected]
    if kind == "characters":
        for number, text in enumerate(expected):
            own = [id for id in ids[1:][found.members == number].tolist() if id != tokenizer.end_id]
            assert tokenizer.decode(own) == text
    # An end token belongs to the document that it ends.
    last_stretches = np.cumsum([-(-len(text) // 50) for text in whole]) - 1
    assert found.members[ids[1:] == tokenizer.end_id].tolist() == last_stretches.tolist()


def test_every_vocabulary_has_the_same_stretches(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [text * 30 for text in TEXTS])
    sizes = {tuple(read(file, kind, 3)[0].n_bytes.tolist()) for kind in KINDS}
    assert len(sizes) == 1
    assert len(next(iter(sizes))) > 10


def test_many_documents_are_paired_whole(tmp_path: Path) -> None:
    texts = [f"{number}. {TEXTS[number % 3]}" * 5 for number in range(DOCUMENTS)]
    found, ids, end = read(write(tmp_path / "a.jsonl", texts), "bpe", DOCUMENTS)
    assert (found.unit, len(found.n_bytes)) == ("documents", DOCUMENTS)
    assert found.n_bytes.tolist() == [len(text.encode()) for text in texts]
    assert [found.members[place] for place, id in enumerate(ids[1:]) if id == end] == list(range(DOCUMENTS))
    few, _, _ = read(write(tmp_path / "b.jsonl", texts[:-1]), "bpe", DOCUMENTS - 1)
    assert few.unit == f"stretches of {STRETCH:,} characters"
    assert len(few.n_bytes) > DOCUMENTS
