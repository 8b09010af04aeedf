"""Which sentences and pairs are the same."""

from regard.data.pairs.index import PairIndex, pair_hash
from regard.data.pairs.rows import Pair


def index_of(*pairs: tuple[str, str, str]) -> PairIndex:
    index = PairIndex()
    for number, (file, source, target) in enumerate(pairs, start=1):
        index.add(Pair(source, target, file, number))
    return index


def test_a_pair_has_a_direction() -> None:
    assert pair_hash(1, 2) != pair_hash(2, 1)


def test_duplicates_and_sources_with_several_targets() -> None:
    pairs = [
        ("Yes", "Ja"),
        ("Yes", "Jawohl"),
        ("yes", "ja"),
        ("No", "Nein"),
        ("No", "Nein"),
        ("No", "Nein"),
        ("Oh", "Ja"),
    ]
    assert index_of(*(("a", *pair) for pair in pairs)).duplicates() == (3, 1)


def test_finding_the_first_place() -> None:
    index = index_of(("a.en", "Yes", "Ja"), ("a.en", "No", "Nein"), ("b.en", "yes", "Jawohl"), ("b.en", "YES", "JA"))
    finder = index.finder()
    assert finder.find(Pair("Yes!", "Ja", "", 0)) == (None, None)
    assert finder.find(Pair("yes", "jawohl", "", 0)) == (0, 2)
    assert finder.find(Pair("Yes", "Doch", "", 0)) == (0, None)
    assert [index.place(number) for number in range(4)] == ["a.en:1", "a.en:2", "b.en:3", "b.en:4"]


def test_an_index_goes_on_after_a_finder_was_made() -> None:
    index = index_of(("a.en", "Yes", "Ja"))
    index.finder()
    index.add(Pair("No", "Nein", "a.en", 2))
    assert index.finder().find(Pair("No", "Nein", "", 0)) == (1, 1)
