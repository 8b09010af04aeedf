"""The names of splits."""

import pytest

from regard.data.formats.splits import check_splits, no_row_of_split, spellings, split_of
from regard.errors import UsageError


def test_names_of_splits() -> None:
    names = ("train", " Training ", "DEV", "val", "validation", "test", "x", "")
    assert [split_of(one) for one in names] == ["train", "train", "valid", "valid", "valid", "test", "", ""]
    assert spellings("test") == "'test' or 'testing'"


def test_a_split_that_is_none() -> None:
    check_splits("", "valid")
    with pytest.raises(UsageError) as caught:
        check_splits("train", "tset")
    assert caught.value.problem == "The split must be train, valid or test, not 'tset'."
    assert caught.value.remedy == "Did you mean test?"


def test_a_split_without_rows() -> None:
    error = no_row_of_split(["a.tsv", "b.tsv"], "set", "train")
    assert error.problem == "a.tsv, b.tsv: in no good row does the column 'set' say 'train' or 'training'."
