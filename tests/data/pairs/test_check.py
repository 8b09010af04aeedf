"""The report on sentence pairs: bad ones, duplicates, lengths, what of a test set stands in training."""

from collections import Counter
from pathlib import Path

import pytest

from regard.data.formats import Bad
from regard.data.pairs.check import Lengths, Shared, check
from regard.errors import DataError


def test_lengths_of_known_numbers() -> None:
    assert Lengths.of(Counter(range(100, 0, -1))) == Lengths(mean=50.5, median=50, percentile_95=95, maximum=100)
    assert Lengths.of(Counter([3, 3, 3, 400])) == Lengths(mean=102.25, median=3, percentile_95=400, maximum=400)
    assert Lengths.of(Counter([7])) == Lengths(mean=7.0, median=7, percentile_95=7, maximum=7)


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> str:
    file = folder / name
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return str(file)


def test_a_report_on_a_corpus(tmp_path: Path) -> None:
    train = write(
        tmp_path,
        "train.tsv",
        [
            ("A dog", "Ein Hund"),
            ("a  dog", "ein hund"),
            ("A dog", "Ein Köter"),
            ("", "leer"),
            ("OK ", "OK"),
            ("A b c d", "E"),
        ],
    )
    report = check([train])
    assert report.n_pairs == 5
    assert report.bad_rows.examples == {"empty source": [Bad(train, 4, "empty source", "leer")]}
    assert (report.n_duplicates, report.n_ambiguous_sources, report.n_copied) == (1, 1, 1)
    assert report.source_characters == Lengths(mean=5.2, median=5, percentile_95=7, maximum=7)
    assert report.source_words == Lengths(mean=2.2, median=2, percentile_95=4, maximum=4)
    assert report.target_characters == Lengths(mean=5.6, median=8, percentile_95=9, maximum=9)
    assert report.target_words == Lengths(mean=1.6, median=2, percentile_95=2, maximum=2)
    assert report.overlap is None


def test_how_much_of_the_test_set_stands_in_training(tmp_path: Path) -> None:
    train = [
        write(tmp_path, "train.tsv", [("Yes", "Ja"), ("No", "Nein")]),
        write(tmp_path, "more.tsv", [("A dog", "Ein Hund"), ("A dog", "Ein Köter")]),
    ]
    test = write(tmp_path, "test.tsv", [("a dog", "ein köter"), ("no", "Nee"), ("A cat", "Eine Katze"), ("x", "")])
    overlap = check(train, against=[test]).overlap
    assert overlap is not None
    assert (overlap.n_pairs, overlap.n_shared_pairs, overlap.n_shared_sources) == (3, 1, 2)
    assert (overlap.pair_share, overlap.source_share) == (1 / 3, 2 / 3)
    assert overlap.bad_rows.reasons == {"empty target": 1}
    assert overlap.examples == (
        Shared(source="a dog", place=f"{test}:1", train_place=f"{train[1]}:2", same_target=True),
        Shared(source="no", place=f"{test}:2", train_place=f"{train[0]}:2", same_target=False),
    )


def test_progress_is_told_now_and_then(tmp_path: Path) -> None:
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("".join(f"line {number}\n" for number in range(2500)))
    told: list[int] = []
    check([tmp_path / "a.en", tmp_path / "a.de"], progress=told.append)
    assert told == [0, 1000, 2000]


def test_a_missing_test_set_is_an_error_before_training_data_is_read(tmp_path: Path) -> None:
    train = write(tmp_path, "train.tsv", [("a", "b")] * 3)
    Path(train).write_bytes(b"\xff\n")  # reading it would be another error
    with pytest.raises(DataError, match=r"test\.tsv: there is no such file"):
        check([train], against=[str(tmp_path / "test.tsv")])


def test_columns_are_chosen_for_both_sides(tmp_path: Path) -> None:
    train = write(tmp_path, "train.tsv", [("en", "de"), ("Yes", "Ja")])
    report = check([train], against=[train], source="de", target="en")
    assert report.source_characters.maximum == 2
    assert report.overlap is not None
    assert report.overlap.pair_share == 1.0
