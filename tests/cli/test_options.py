import pytest

from regard.cli.options import changed, explained, whole_numbers
from regard.config import DecodingConfig
from regard.errors import UsageError


def test_an_option_has_the_help_of_its_setting() -> None:
    assert explained(DecodingConfig, "beam").help == "hypotheses kept a sentence; 1 is greedy search"


def test_only_what_is_given_changes() -> None:
    settings = DecodingConfig(beam=7, top_k=3)
    assert changed(settings, beam=None, top_k=0, sample=True) == DecodingConfig(beam=7, top_k=0, sample=True)


def test_whole_numbers() -> None:
    assert whole_numbers("1,20,3", option="--steps") == (1, 20, 3)


@pytest.mark.parametrize("text", ["", "1,x", "1,,2", "1.5", "2,2"])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        whole_numbers(text, option="--seeds")
    assert raised.value.problem == f"--seeds takes different whole numbers with commas between them, not '{text}'."
    assert raised.value.remedy == "Write them, for example, as --seeds 1,2,3"
