"""Character maps that are written: what they replace, as the tokenizers library reads them, in a layout that is sound."""

import pytest
from tokenizers import normalizers

from regard.data.text.charsmap import check_charsmap
from regard.exchange.sentencepiece_charsmap import charsmap_bytes, lower_case


@pytest.mark.parametrize(
    "replacements",
    [
        {"A": "a"},
        {"A": "a", "Ä": "ä", "Ω": "long one", "漢": "", "😀": ":-)"},
        {chr(0x4E00 + n): str(n) for n in range(600)},  # of more than one block
    ],
)
def test_each_character_is_replaced(replacements: dict[str, str]) -> None:
    content = charsmap_bytes(replacements)
    check_charsmap(content)
    assert int.from_bytes(content[:4], "little") % 1024 == 0
    normaliser = normalizers.Precompiled(content)
    text = "".join([*replacements][:200]) + "other é 字 \0 \0A"
    expected = "".join(replacements.get(one, one) for one in text)
    assert normaliser.normalize_str(text) == expected


def test_lower_case_is_that_of_the_tokenizers_library() -> None:
    table = lower_case()
    assert {table[one] for one in "AÄΩЖΣ"} == {*"aäωжσ"}
    assert table["İ"] == "i\u0307"
    assert "a" not in table and "ß" not in table and "漢" not in table
    normaliser = normalizers.Precompiled(charsmap_bytes(table))
    text = "ΟΔΟΣ ÄPFEL İ Ǆ 𐐀 漢 straße"
    assert normaliser.normalize_str(text) == normalizers.Lowercase().normalize_str(text)
