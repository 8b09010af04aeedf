"""The model card."""

from regard.config import DataConfig, ModelTable, RunConfig
from regard.evaluation.baselines.verdict import ScoredBaseline
from regard.training.card import model_card

CONFIG = RunConfig(
    task="translate",
    data=DataConfig(train=("/data/a.en", "/data/a.de"), valid=("/data/v.tsv",)),
    model=ModelTable(preset="transformer-tiny"),
)


def test_the_card_says_what_the_model_is_what_it_read_and_what_it_reached() -> None:
    best = {"step": 1200, "loss": 1.23456, "bleu": 40.25}
    average = {"step": 1500, "loss": 1.2, "bleu": 41.0}
    facts = [("training", "29,000 pairs")]
    card = model_card("m30k", CONFIG, facts=facts, best=best, average=average, n_parameters=1_234_567)
    assert card.startswith("# m30k\n\nA model for the task `translate`, trained with regard: transformer-tiny, ")
    assert "1,234,567 parameters." in card
    assert "- training: 29,000 pairs\n- file: `/data/a.en`\n- file: `/data/a.de`\n- file: `/data/v.tsv`\n" in card
    assert "- the average of the last checkpoints, which `m30k` means: loss 1.2, bleu 41\n" in card
    assert "- the best single checkpoint, step 1,200: loss 1.235, bleu 40.25\n" in card
    assert '    regard translate m30k "…"\n    regard evaluate m30k --data TEST-FILES\n    regard plot m30k\n' in card
    assert "`regard train config.toml --run ANOTHER` repeats the run.\n" in card


def test_the_card_has_the_intervals_of_scores() -> None:
    best = {"step": 40, "loss": 0.5, "accuracy": 81.25, "accuracy_low": 78.61, "accuracy_high": 83.54}
    card = model_card("mood", CONFIG, facts=[], best=best, average={}, n_parameters=3)
    assert "step 40: loss 0.5, accuracy 81.25 (95 % interval 78.61 to 83.54)\n" in card


def test_the_card_says_what_a_simple_baseline_has() -> None:
    best = {"step": 1200, "loss": 1.2, "bleu": 40.25}
    baselines = [ScoredBaseline(name="word-for-word dictionary", scores={"bleu": 13.2, "chrf": 49.0})]
    card = model_card("m30k", CONFIG, facts=[], best=best, average={}, n_parameters=1, baselines=baselines)
    assert "bleu 40.25\n- baseline, word-for-word dictionary: bleu 13.2, chrf 49\n\n## Use" in card
    worse = {**best, "bleu": 10.0}
    card = model_card("m30k", CONFIG, facts=[], best=worse, average={}, n_parameters=1, baselines=baselines)
    assert (
        "chrf 49\n\nThe model does not beat a simple baseline: it has BLEU 10.0, and word-for-word dictionary has BLEU 13.2."
        "\nWhat may help: more data, more steps, a smaller model or --init from a run that has learned from more.\n\n## Use"
    ) in card


def test_a_run_without_a_validation_and_with_an_own_network_says_so() -> None:
    config = RunConfig(task="language", model=ModelTable())
    card = model_card("mine", config, facts=[], best={}, average={}, n_parameters=3)
    assert "a custom network, 3 parameters." in card
    assert "- none yet\n" in card
    assert '    run = regard.load("mine", model=YourNetwork(…))\n    run.generate(…)\n' in card
    assert "regard generate" not in card
    assert "regard train config.toml" not in card
    assert '`regard.train("config.toml", model=YourNetwork(…), run="ANOTHER")`.\n' in card


def test_the_card_says_what_the_run_began_with() -> None:
    init_facts = [("init from", "runs/a"), ("weights loaded", "3 of 4 parameters: a")]
    card = model_card("b", CONFIG, facts=[], best={}, average={}, n_parameters=4, init_facts=init_facts)
    assert "\n\n## Initialisation\n\n- init from: runs/a\n- weights loaded: 3 of 4 parameters: a\n\n## Scores" in card
    alone = model_card("b", CONFIG, facts=[], best={}, average={}, n_parameters=4)
    assert "Beginning" not in alone
