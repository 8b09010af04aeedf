"""Which column or language a name means."""

import pytest

from regard.data.formats.columns import (
    LANGUAGES,
    call_unnamed,
    can_choose,
    choose_sides,
    find,
    is_column_name,
    match,
    name_text_and_label,
    plain,
)
from regard.errors import DataError


def chosen(names: list[str], source: str = "", target: str = "") -> tuple[str, str]:
    return choose_sides("a.tsv", names, source=source, target=target, noun="column")


def test_the_name_itself_comes_before_its_kin() -> None:
    assert match("en", ["en-US", "en", "EN"]) == ["en"]
    assert match("en", ["en-US", "EN", "en-GB"]) == ["EN"]
    assert match("en", ["en-US", "de", "en_GB"]) == ["en-US", "en_GB"]
    assert match("EN_us", ["en-US", "en-GB"]) == ["en-US"]


def test_a_beginning_is_no_region() -> None:
    assert match("e", ["en"]) == []
    assert match("de", ["den", "description"]) == []


def test_a_region_is_not_dropped() -> None:
    assert match("en-US", ["en"]) == []


def test_several_regions_are_an_error() -> None:
    assert find("a.tmx", "en", ["de", "en-US"]) == "en-US"
    assert find("a.tmx", "fr", ["de", "en-US"]) is None
    with pytest.raises(DataError) as caught:
        find("a.tmx", "en", ["en-US", "de", "en-GB"])
    assert caught.value.problem == "a.tmx: 'en' may be en-US or en-GB."
    assert caught.value.remedy == "Write the full name, for example en-US."


def test_two_names_are_taken_in_their_order() -> None:
    assert chosen(["en", "de"]) == ("en", "de")
    assert chosen(["en", "de"], source="de") == ("de", "en")
    assert chosen(["en", "de"], target="en") == ("de", "en")
    assert chosen(["id", "en", "de"], source="de", target="en") == ("de", "en")


def test_more_than_two_names_need_a_choice() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["id", "en", "de"], source="en")
    assert caught.value.problem == "a.tsv holds 3 columns: id, en and de."
    assert caught.value.remedy == "Say which are meant with --from and --to."


def test_one_name_makes_no_pair() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["en"])
    assert caught.value.problem == "a.tsv holds 1 column: en."
    assert caught.value.remedy == "A pair of them is needed."


def test_an_unknown_name_gets_the_near_one() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["english", "german", "id"], source="englisch", target="german")
    assert caught.value.problem == "a.tsv has no column 'englisch'."
    assert caught.value.remedy == "Did you mean english?"
    with pytest.raises(DataError) as caught:
        chosen(["en", "de"], source="fr")
    assert caught.value.remedy == "Available: de, en."


def test_both_sides_must_differ() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["en-US", "de"], source="en", target="en-us")
    assert caught.value.problem == "a.tsv: source and target are the same column, en-US."
    assert caught.value.remedy == "Give --from and --to different ones."


def test_columns_called_source_and_target_are_what_they_are_called() -> None:
    assert chosen(["Target", "source"]) == ("source", "Target")
    assert chosen(["src", "tgt"], source="en", target="de") == ("src", "tgt")
    assert chosen(["src", "trg"], target="de") == ("src", "trg")
    assert chosen(["source", "target"], source="target") == ("target", "source")
    for names, source in ((["source", "target"], "3"), (["source", "target", "id"], "en"), (["source", "de"], "en")):
        with pytest.raises(DataError, match=f"no column '{source}'"):
            chosen(names, source=source, target="de")


@pytest.mark.parametrize(
    ("names", "source", "target", "possible"),
    [
        ([], "en", "de", False),
        (["en"], "en", "de", False),
        (["fr", "id"], "en", "de", False),
        (["id", "en-US", "de"], "en", "de", True),
        (["src", "tgt"], "en", "de", True),
        (["en"], "en", "", False),
        (["id", "en", "de"], "", "", True),
    ],
)
def test_whether_there_is_a_choice(names: list[str], source: str, target: str, possible: bool) -> None:
    assert can_choose(names, source=source, target=target) is possible


def test_column_names_that_need_no_asking() -> None:
    assert len(LANGUAGES) == 183
    assert all(is_column_name(name) for name in ("en", "DE", "en-US", "en_gb", "zh-Hant-TW", "es-419", "Source", "tgt"))
    assert not any(is_column_name(name) for name in ("", "En", "xx", "eng", "en-suite", "en US", "Hello", "en-", "1"))


def test_a_language_without_a_name_gets_the_one_that_is_free() -> None:
    assert call_unnamed("target", given=("en", "de"), known="en") == "de"
    assert call_unnamed("target", given=("de", "en"), known="en") == "de"
    assert call_unnamed("target", given=("de", "fr"), known="en") == "fr"
    assert call_unnamed("source", given=("de", "fr"), known="") == "de"
    assert call_unnamed("target", given=("en-US", ""), known="en") == "target"
    assert call_unnamed("target", given=("", ""), known="en") == "target"
    assert call_unnamed("target", given=(), known="en") == "target"


def test_spellings_of_a_column() -> None:
    assert {plain(name) for name in ("Sentence 1", "sentence_1", "sentence-1", " SENTENCE1")} == {"sentence1"}


def test_a_text_and_a_label_are_named() -> None:
    assert name_text_and_label(["id", "Premise", "genre", "gold_label"])
    assert not name_text_and_label(["text", "phrase"])
    assert not name_text_and_label(["label", "phrase"])
