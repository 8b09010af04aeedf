"""What models offer: regard's own, and networks that know less."""

import pytest
from torch import nn

from regard.models.bert import Bert, BertConfig
from regard.models.gpt import GPT, GPTConfig
from regard.models.llama import Llama, LlamaConfig
from regard.models.recurrent_encoder import RecurrentEncoderConfig, RecurrentEncoderModel
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks import offers

SIZES = {"n_layers": 1, "n_heads": 2, "d_model": 8}
BERT = Bert(BertConfig(vocab=9, head="words", d_ff=8, max_positions=12, **SIZES))  # type: ignore[arg-type]
GPT_MODEL = GPT(GPTConfig(vocab=9, context=16, **SIZES))
LLAMA = Llama(LlamaConfig(vocab=9, context=16, window=4, d_ff=8, n_key_heads=1, **SIZES))
BIRNN = RecurrentEncoderModel(RecurrentEncoderConfig(vocab=9, d_model=8, d_state=8))
TRANSFORMER = Transformer(TransformerConfig(source_vocab=9, target_vocab=9, n_heads=2, d_model=8, d_ff=8))
PLAIN = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("model", "encodes", "alone", "states", "decodes", "masked"),
    [
        (BERT, True, True, False, False, True),
        (BIRNN, True, True, False, False, False),
        (TRANSFORMER, True, False, True, True, False),
        (GPT_MODEL, False, False, True, True, False),
        (PLAIN, False, False, False, False, False),
    ],
    ids=["bert", "birnn", "transformer", "gpt", "plain"],
)
def test_what_each_architecture_offers(
    model: nn.Module, encodes: bool, alone: bool, states: bool, decodes: bool, masked: bool
) -> None:
    assert offers.can_encode(model) == encodes
    assert offers.is_encoder_only(model) == alone
    assert offers.has_states(model) == states
    assert offers.can_decode(model) == decodes
    assert offers.has_masked_head(model) == masked
    assert offers.device_of(model).type == "cpu"


def test_how_long_a_text_may_be() -> None:
    assert [offers.max_length(one) for one in (BERT, BIRNN, GPT_MODEL, LLAMA, PLAIN)] == [12, None, 16, None, None]
    # A window goes over any length, but was trained on texts of the context's.
    assert [offers.context_length(one) for one in (GPT_MODEL, LLAMA, PLAIN)] == [16, None, None]
    assert [offers.trained_context(one) for one in (BERT, GPT_MODEL, LLAMA, PLAIN)] == [12, 16, 16, None]


def test_which_networks_read_from_both_ends() -> None:
    assert [offers.reads_both_ways(one) for one in (BIRNN, BERT, PLAIN)] == [True, False, False]
