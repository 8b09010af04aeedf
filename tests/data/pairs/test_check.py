"""The policy about bad pairs, the report on a corpus, the hash of a file."""

import hashlib
from pathlib import Path

import pytest

from regard.data.formats import Bad, Pair
from regard.data.pairs.check import N_EXAMPLES, Shared, check, content_hash, screen
from regard.data.pairs.lengths import Lengths
from regard.errors import DataError, UsageError


def good(number: int) -> list[Pair | Bad]:
    return [Pair("Yes", "Ja", "a.en", line) for line in range(1, number + 1)]


def bad(number: int, reason: str = "empty source") -> list[Pair | Bad]:
    return [Bad("a.en", line, reason, f"text {line}") for line in range(1, number + 1)]


def reasons_of(source: str, target: str, max_ratio: float = 9.0, max_characters: int = 500) -> list[str]:
    pair = Pair(source, target, "a.en", 3)
    screening = screen([*good(999), pair], max_ratio=max_ratio, max_characters=max_characters)
    assert (pair in list(screening)) == (not screening.report.reasons)
    return list(screening.report.reasons)


def test_good_pairs_pass_and_bad_ones_are_counted() -> None:
    screening = screen([*bad(7), *good(1000), *bad(2, "not UTF-8")])
    assert list(screening) == good(1000)
    report = screening.report
    assert (report.n_read, report.n_good, report.n_bad) == (1009, 1000, 9)
    assert list(report.reasons.items()) == [("empty source", 7), ("not UTF-8", 2)]
    assert report.examples == {"empty source": tuple(bad(N_EXAMPLES)), "not UTF-8": tuple(bad(2, "not UTF-8"))}


def test_lines_that_are_too_long() -> None:
    assert reasons_of("x" * 500, "y" * 500) == []
    assert reasons_of("x" * 501, "y" * 500) == ["too long"]
    assert reasons_of("x" * 500, "y" * 501) == ["too long"]


def test_lengths_that_are_too_different() -> None:
    assert reasons_of("x" * 90, "y" * 10) == []
    assert reasons_of("x" * 91, "y" * 10) == ["lengths too different"]
    assert reasons_of("x" * 10, "y" * 91) == ["lengths too different"]


def test_short_sentences_may_differ_in_length() -> None:
    assert reasons_of("Ja.", "Yes, it is.", max_ratio=2.0) == []
    assert reasons_of("x", "y" * 39) == []
    assert reasons_of("x", "y" * 40) == ["lengths too different"]


def test_one_percent_may_be_bad_and_no_more() -> None:
    assert len(list(screen([*good(990), *bad(10)]))) == 990
    with pytest.raises(DataError) as caught:
        list(screen([*good(989), *bad(9), *bad(2, "not UTF-8")]))
    assert caught.value.problem == (
        "11 of 1,000 pairs are bad (1.1%, at most 1% may be): 9 empty source, 2 not UTF-8. "
        "First: a.en:1 empty source 'text 1'; a.en:1 not UTF-8 'text 1'."
    )
    assert caught.value.remedy == "Fix the files, or leave the bad pairs out with --on-bad keep-going."


def test_keep_going_leaves_out_however_many() -> None:
    screening = screen([*good(1), *bad(10)], on_bad="keep-going")
    assert list(screening) == good(1)
    assert screening.report.reasons == {"empty source": 10}


def test_nothing_good_is_an_error_even_when_going_on() -> None:
    with pytest.raises(DataError) as caught:
        list(screen(bad(2), on_bad="keep-going"))
    assert caught.value.problem.startswith("2 of 2 pairs are bad (100.0%, at most 1% may be): 2 empty source.")
    assert caught.value.remedy == "Fix the files."


def test_nothing_at_all_is_an_error() -> None:
    with pytest.raises(DataError) as caught:
        list(screen([]))
    assert caught.value.problem == "No pair was read: the files hold none."
    assert caught.value.remedy == "Check that these are the right files."


def test_an_unknown_policy_gets_the_near_name() -> None:
    with pytest.raises(UsageError) as caught:
        screen([], on_bad="keep_going")
    assert caught.value.problem == "'keep_going' is no policy for bad pairs."
    assert caught.value.remedy == "Did you mean keep-going?"


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
    assert report.screening.examples == {"empty source": (Bad(train, 4, "empty source", "leer"),)}
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
    assert overlap.screening.reasons == {"empty target": 1}
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
    train = write(
        tmp_path,
        "train.tsv",
        [
            (
                "a",
                "b",
            )
        ]
        * 3,
    )
    Path(train).write_bytes(b"\xff\n")  # reading it would be another error
    with pytest.raises(DataError, match=r"test\.tsv: there is no such file"):
        check([train], against=[str(tmp_path / "test.tsv")])


def test_columns_are_chosen_for_both_sides(tmp_path: Path) -> None:
    train = write(tmp_path, "train.tsv", [("en", "de"), ("Yes", "Ja")])
    report = check([train], against=[train], source="de", target="en")
    assert report.source_characters.maximum == 2
    assert report.overlap is not None
    assert report.overlap.pair_share == 1.0


def test_a_hash_is_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"ab")
    assert content_hash(tmp_path / "one") == hashlib.sha256(b"ab").hexdigest()


def test_a_missing_file_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        content_hash(tmp_path / "train.en")
