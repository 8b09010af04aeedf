import json
from typing import Any


def test_parameters_of_every_preset(command: Any) -> None:
    outcome = command("models", "--vocab-size", 37000)
    assert outcome.code == 0
    counts = {line.split()[0]: line.split()[-1] for line in outcome.lines[1:]}
    # Post-norm with a shared and tied vocabulary of 37,000: worked out by hand in the design.
    assert counts["transformer-base"] == "63,082,496"
    assert counts["transformer-big"] == "214,245,376"


def test_sizes_of_every_family(command: Any) -> None:
    rows = {line.split()[0]: line.split() for line in command("models", "--vocab-size", 50257).lines[1:]}
    assert rows["transformer-tiny"][-5:] == ["4+4", "128", "256", "4", rows["transformer-tiny"][-1]]
    assert rows["rnn"][-4:-1] == ["2", "128", "248"]
    assert rows["birnn"][-4:-1] == ["2", "128", "128"]
    assert rows["gpt2"][-6:] == ["12", "768", "3,072", "12", "1,024", "124,439,808"]


def test_an_encoder_is_counted_without_the_head_of_a_task(command: Any) -> None:
    outcome = command("models", "--vocab-size", 30522)
    [row] = [line for line in outcome.lines if line.startswith("bert-base ")]
    assert "mask, classify, tag, regress" in row
    assert row.split()[-6:] == ["12", "768", "3,072", "12", "512", "109,482,240"]
    assert outcome.err == (
        "parameters with a shared vocabulary of 30,522 tokens and without task heads; of image models with 1,000 classes "
        "and 14 × 14 patches:\n"
    )
    [row] = [line for line in outcome.lines if line.startswith("resnet-50 ")]
    assert row.split()[-5:] == ["50", "64", "to", "512", "25,557,032"]


def test_json(command: Any) -> None:
    found = [json.loads(line) for line in command("models", "--json").lines]
    assert found[0]["model"] == "transformer-tiny"
    assert (found[0]["vocab_size"], found[0]["fields"]["d_model"]) == (8000, 128)


def test_a_vocabulary_has_tokens(command: Any) -> None:
    outcome = command("models", "--vocab-size", 0)
    assert outcome.code == 2
    assert outcome.error == [
        "error: --vocab-size must be at least 1, not 0.",
        "Correct --vocab-size and run the command again.",
    ]
