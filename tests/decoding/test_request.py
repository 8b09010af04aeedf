import pytest
import torch

from regard.decoding.prompt import Prompt
from regard.decoding.request import Request
from regard.errors import UsageError


def test_one_start_token_is_the_prompt_of_every_sentence():
    first = Request(prompt=7, end_id=1, limits=torch.tensor([3, 4])).first()
    assert first.ids.tolist() == [[7], [7]]
    assert first.start_id == 7


def test_a_prompt_per_sentence_stays_as_it_is():
    prompt = Prompt.of([[5, 6], [7]])
    assert Request(prompt=prompt, end_id=1, limits=torch.tensor([3, 4])).first() is prompt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"limits": torch.tensor([3, 0])},
            "Every sentence needs a limit of at least 1 token, but sentence 1 has 0.\nGive a larger maximum length.",
        ),
        ({"seed": -1}, "The seed of sampling must not be below 0, but it is -1.\nGive 0 or more."),
    ],
)
def test_senseless_requests_are_refused(options, message):
    with pytest.raises(UsageError) as raised:
        Request(**{"prompt": 0, "end_id": 1, "limits": torch.tensor([1, 2])} | options)
    assert str(raised.value) == message
