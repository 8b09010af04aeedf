"""Words of a trace: subwords merged, and the alignment error rate against a given alignment."""

import numpy as np
import pytest
from tests.inspection.families import traced

from regard.errors import UsageError
from regard.inspection.named_array import NamedArray
from regard.inspection.words import alignment_error, attention_links, merge_words, written_words
from regard.tasks.reading import Positions, Reading

SOURCE = Positions(
    name="source", labels=("red", " hou", "se", "(end)"), ids=(5, 6, 7, 2), text="red house", words=(0, 1, 1, None)
)
TARGET = Positions(
    name="target",
    labels=("(start)", "mai", "son", " rouge"),
    ids=(1, 5, 6, 7),
    text="maison rouge",
    words=(None, 0, 0, 1),
)
READING = Reading(
    forward=lambda: None, places=(("encoder", SOURCE), ("", TARGET)), outputs=str, memory=SOURCE, writes=(5, 6, 7, 2)
)
WEIGHTS = np.array([[0.3, 0.25, 0.25, 0.2], [0.1, 0.4, 0.4, 0.1], [0.6, 0.1, 0.1, 0.2], [0.0, 0.0, 0.0, 1.0]])


def test_rows_of_a_memory_are_the_words_that_are_written() -> None:
    array = NamedArray(np.array([WEIGHTS, np.eye(4)]), ("head", "target", "source"))
    merged = merge_words(array, READING)
    assert merged.axes == array.axes
    np.testing.assert_allclose(merged.values[0], [[0.2, 0.65], [0.6, 0.2]], rtol=1e-6)
    assert merged.labels == {"target": ("maison", "rouge"), "source": ("red", "house")}
    assert written_words(READING) == (0, 0, 1, None)


def test_rows_of_self_attention_are_the_words_that_are_read() -> None:
    merged = merge_words(NamedArray(WEIGHTS, ("source", "key")), READING)
    np.testing.assert_allclose(merged.values, [[0.3, 0.5], [0.35, 0.5]], rtol=1e-6)
    assert merged.labels == {"source": ("red", "house"), "key": ("red", "house")}


def test_what_has_no_words_is_refused() -> None:
    with pytest.raises(UsageError, match="The axes head, feature are not those of attention weights"):
        merge_words(NamedArray(WEIGHTS, ("head", "feature")), READING)
    trace = traced("vit")
    with pytest.raises(UsageError, match="The positions of the axis patch have no words to merge"):
        merge_words(trace["encoder.0.self_attention.weights"], trace.reading)


def test_the_error_of_a_trace() -> None:
    trace = traced("transformer-post")
    own = [(link.source, link.target) for link in attention_links(trace)]
    gold = " ".join(f"{source}-{target}" for source, target in own)
    assert own
    assert alignment_error(trace, gold) == 0.0
    assert alignment_error(trace, "0-77") == 1.0
    assert 0 < alignment_error(trace, f"{gold} 50-50") < 1


@pytest.mark.parametrize("name", ["gpt", "rnn", "captioner-vit"])
def test_a_model_that_aligns_no_words(name: str) -> None:
    with pytest.raises(UsageError, match="This model aligns no words"):
        alignment_error(traced(name), "0-0")
