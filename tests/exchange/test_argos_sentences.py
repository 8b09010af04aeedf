"""Sentence boundaries in a graph of rules, run with ONNX Runtime on what MiniSBD gives it; and the extra that it needs."""

import json
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from regard.data.text.sentence_splitting import count_sentences
from regard.errors import MissingExtraError
from regard.exchange.argos_sentences import character_ids, sentence_graph

LONG = "the dog runs and " * 20 + "sleeps."


@cache
def session() -> tuple[Any, dict[str, Any]]:
    """The graph, and the tables that stand in its file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    found = onnxruntime.InferenceSession(sentence_graph(), options, providers=["CPUExecutionProvider"])
    tables = found.get_modelmeta().custom_metadata_map
    return found, {name: json.loads(text) for name, text in tables.items()}


def features(text: str, lexicon: set[str], longest: int) -> list[list[float]]:
    """For each character whether so many behind it, or in front, spell a word of the lexicon with it."""
    rows = []
    for place in range(len(text)):
        behind = [text[place : place + n + 1].lower() in lexicon for n in range(1, longest + 1)]
        front = [n <= place and text[place - n : place + 1].lower() in lexicon for n in range(1, longest + 1)]
        rows.append([float(one) for one in (*behind, *front)])
    return rows


def split(*texts: str) -> list[list[str]]:
    """Cut paragraphs, all in one batch, as MiniSBD does: several spaces are one, and a paragraph ends a sentence."""
    graph, tables = session()
    ids, longest = tables["vocab"]["_unit2id"], tables["config"]["num_dict_feat"]
    width = max(map(len, texts)) + 1
    units = np.full((len(texts), width), ids["<PAD>"], np.int64)
    table = np.zeros((len(texts), width, 2 * longest), np.float32)
    for row, text in enumerate(texts):
        units[row, : len(text)] = [ids.get(character, ids["<UNK>"]) for character in text]
        table[row, : len(text)] = features(text, {*tables["lexicon"]}, longest)
    [scores] = graph.run(None, {"units": units, "features": table})
    assert scores.shape == (len(texts), width, 3)
    found = []
    for text, own in zip(texts, scores.argmax(2), strict=True):
        places = [0, *(place + 1 for place in range(len(text) - 1) if own[place] == 2), len(text)]
        found.append([text[a:b].strip() for a, b in pairwise(places)])
    return found


@pytest.mark.parametrize(
    "sentences",
    [
        ["A dog runs.", "The cat sleeps!", "Is it late?", "Yes."],
        ["Wait...", "What?!", "No!!", "Well…", "Yes."],
        ["Dr. Hund met Mr. Jones and Prof. Dr. Katze.", "They ran."],
        ["J. R. Hund wrote it with A. Katze.", "The U.S. Army came."],
        ["Am 3. Mai und am 12. Juni war er z. B. da.", "Gut."],
        ["He came at 3 p.m. and left.", "It was I.", "You know."],
        ['He said "Stop."', "Then he left.", "(Really.)", "“Yes.”", "«Ja.»", "„Gut.“", "So."],
        ["Cats vs. Dogs, cf. Hund et al. Berlin is a book.", "Read it."],
        ["It has No. 5 and Fig. 3 in it.", "See there!", "3 are left.", "¿Qué?"],
        ["敏捷的棕色狐狸。", "今天天气很好！", "「好。」", "吗？"],
        ["Я здесь.", "Ты там."],
        ["مرحبا.", "كيف حالك؟", "انا بخير."],
        ["the dog runs.", "the cat sleeps.", "and so on"],
        [LONG, LONG, LONG],
    ],
)
def test_sentences_are_found(sentences: list[str]) -> None:
    joiner = "" if sentences[0].endswith("。") else " "
    text = joiner.join(sentences)
    assert split(text) == [sentences]
    assert count_sentences(text) == len(sentences)  # as our own rules have it


@pytest.mark.parametrize(
    "text", ["a", ".", "...", " .", "3.", "a dog", "It costs 3.50 or 1. 5.", "e.g. this one", "Hi! 😀"]
)
def test_one_sentence_stays_one(text: str) -> None:
    assert split(text) == [[text.strip()]]


def test_paragraphs_of_one_batch_do_not_meet() -> None:
    """Capitals in one say nothing about the other, and padding is no text."""
    assert split("the dog. the cat.", "The dog. the cat.", "A. B") == [
        ["the dog.", "the cat."],
        ["The dog. the cat."],
        ["A. B"],
    ]


def test_ids_are_those_of_classes() -> None:
    ids = character_ids()
    assert ids["<PAD>"] == 0 and ids["<UNK>"] == 1
    assert len({ids["a"], ids["ß"], ids["я"]}) == len({ids["A"], ids["Ä"]}) == len({ids["1"], ids["٣"]}) == 1
    assert len({ids[one] for one in ' .!。")(IaA1%'}) == 12
    assert "漢" not in ids and "א" not in ids


def test_the_same_bytes_each_time() -> None:
    assert sentence_graph() == sentence_graph()


def test_minisbd_itself_reads_the_graph(tmp_path: Path) -> None:
    minisbd = pytest.importorskip("minisbd")
    (tmp_path / "rules.onnx").write_bytes(sentence_graph())
    detector = minisbd.SBDetect(str(tmp_path / "rules.onnx"), use_gpu=False, max_threads=1)
    text = "Dr. Hund  ran.  He met \tJ. Katze! See www.hund.de. Yes.\n"
    assert detector.sentences(text) == ["Dr. Hund  ran.", "He met \tJ. Katze!", "See www.hund.de.", "Yes."]
    assert detector.sentences(" ") == []


def test_it_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError) as caught:
        sentence_graph()
    assert str(caught.value) == (
        "A package for Argos Translate needs the package 'onnx', which is not installed.\n"
        "Install it with: pip install 'regard[export]'"
    )
