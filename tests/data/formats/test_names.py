"""Which column or language a name means."""

import pytest

from regard.data.formats.names import choose_sides, find, match
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
    assert caught.value.remedy == "There is: de, en."


def test_both_sides_must_differ() -> None:
    with pytest.raises(DataError) as caught:
        chosen(["en-US", "de"], source="en", target="en-us")
    assert caught.value.problem == "a.tsv: source and target are the same column, en-US."
    assert caught.value.remedy == "Give --from and --to different ones."
