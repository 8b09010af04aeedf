import pytest
import torch

from regard.decoding.beam import Beam, beam_search
from regard.decoding.ensemble import Ensemble, EnsembleState
from regard.decoding.request import Request
from regard.decoding.rules import RepetitionPenalty
from regard.errors import UsageError

START, END = 0, 1


def run(model, inputs, rules=()):
    request = Request(prompt=START, end_id=END, limits=torch.tensor([8] * 4), rules=rules)
    return beam_search(model, model.start(inputs), request, Beam(width=3, n_best=2))


def test_a_model_with_itself_is_the_model(prefix_model):
    model, seeds = prefix_model(), [1, 2, 3, 4]
    alone, twice = run(model, seeds), run(Ensemble([model, model]), [seeds, seeds])
    for one, other in zip(alone, twice, strict=True):
        assert [hypothesis.ids for hypothesis in one.hypotheses] == [hypothesis.ids for hypothesis in other.hypotheses]
        assert other.best.score == pytest.approx(one.best.score, abs=1e-5)


def test_probabilities_are_averaged(constant):
    one, other = constant([0.0, 4.0, -2.0]), constant([3.0, 0.0, 1.0])
    ensemble = Ensemble([one, other])
    logits, state = ensemble.step(ensemble.start([[0], [0]]), torch.tensor([[START]]))
    expected = (torch.tensor([[0.0, 4.0, -2.0]]).softmax(-1) + torch.tensor([[3.0, 0.0, 1.0]]).softmax(-1)) / 2
    torch.testing.assert_close(logits.softmax(-1), expected)
    assert len(state.states) == 2


def test_logits_lie_where_the_members_do(constant):
    one, other = constant([0.0, 4.0, -2.0]), constant([3.0, 7.0, 1.0])
    ensemble = Ensemble([one, other])
    logits, _ = ensemble.step(ensemble.start([[0], [0]]), torch.tensor([[START]]))
    torch.testing.assert_close(logits, torch.tensor([[1.5, 5.5, -0.5]]))


def test_a_rule_on_logits_treats_a_model_with_itself_as_the_model(prefix_model):
    model, seeds = prefix_model(end_bias=-1.0), [1, 2, 3, 4]
    rules = [RepetitionPenalty(1.5)]
    alone, twice = run(model, seeds, rules), run(Ensemble([model, model]), [seeds, seeds], rules)
    assert [one.best.ids for one in alone] == [one.best.ids for one in twice]
    assert [one.best.score for one in alone] == pytest.approx([one.best.score for one in twice], abs=1e-5)
    assert [one.best.ids for one in alone] != [one.best.ids for one in run(model, seeds)]


def test_sentences_join_in_every_member(prefix_model):
    model = prefix_model()
    ensemble = Ensemble([model, model])
    joined = ensemble.start([[1], [2]]).join(ensemble.start([[3], [4]]))
    assert isinstance(joined, EnsembleState)
    assert [state.seeds.tolist() for state in joined.states] == [[1, 3], [2, 4]]


def test_members_of_different_vocabularies_are_refused(prefix_model):
    ensemble = Ensemble([prefix_model(5), prefix_model(7)])
    with pytest.raises(UsageError) as raised:
        ensemble.step(ensemble.start([[0], [0]]), torch.tensor([[START]]))
    assert str(raised.value) == (
        "The models of an ensemble must share one target vocabulary, but theirs have [5, 7] tokens.\n"
        "Use runs that were trained with the same vocabulary."
    )


def test_an_ensemble_of_none_is_refused():
    with pytest.raises(UsageError) as raised:
        Ensemble([])
    assert str(raised.value) == "An ensemble needs at least one model, but none was given.\nName one or more runs."
