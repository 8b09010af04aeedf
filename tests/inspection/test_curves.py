"""Curves: what is on them, for every task."""

import math

import numpy as np
import pytest

from regard.errors import UsageError
from regard.inspection.curves import curves_picture, gradients_picture, lengths_picture


def texts(labels):
    return [label.get_text() for label in labels]


def records(n_steps, scale=1.0):
    for step in range(1, n_steps + 1):
        yield {"kind": "train", "step": step, "epoch": 0, "loss": scale * 5 / step, "learning_rate": 1e-3 * step}
        if step % 100 == 0:
            yield {"kind": "valid", "step": step, "loss": scale * 6 / step, "bleu": step / 10, "chrf": 30.1}


def test_curves_of_several_runs_share_four_panels():
    figure = curves_picture({"small": list(records(300)), "large": list(records(200, scale=2))})
    headings = [axes.get_title(loc="left") for axes in figure.axes]
    assert headings == ["training loss", "validation loss", "validation BLEU", "learning rate"]
    training, validation, bleu, rate = figure.axes
    assert [len(axes.lines) for axes in figure.axes] == [4, 2, 2, 2]  # training: each step and the running mean
    np.testing.assert_array_equal(validation.lines[1].get_xydata(), [[100, 0.12], [200, 0.06]])
    np.testing.assert_array_equal(bleu.lines[0].get_ydata(), [10, 20, 30])
    assert rate.lines[0].get_ydata().max() == 1e-3 * 300
    assert texts(figure.legends[0].get_texts()) == ["small", "large"]
    assert bleu.lines[0].get_color() == training.lines[0].get_color() != training.lines[2].get_color()


def test_many_runs_are_told_apart() -> None:
    runs = {f"run {number}": list(records(200)) for number in range(28)}
    lines = curves_picture(runs).axes[1].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 28
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 28


def test_runs_of_different_tasks_share_no_axis() -> None:
    runs = {"a": list(records(200)), "b": list(records(200)), "c": list(records(200))}
    figure = curves_picture(runs, tasks={"a": "translate", "b": "classify", "c": "translate"})
    headings = [axes.get_title(loc="left") for axes in figure.axes]
    assert [heading.partition(":")[0] for heading in headings] == ["translate"] * 4 + ["classify"] * 4
    assert [len(axes.lines) for axes in figure.axes] == [4, 2, 2, 2, 2, 1, 1, 1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]


def test_each_score_that_is_asked_for_has_a_panel() -> None:
    figure = curves_picture({"run": list(records(200))}, scores=["chrf", "bleu"])
    headings = [axes.get_title(loc="left") for axes in figure.axes]
    assert headings == [
        *("training loss", "validation loss", "validation chrF", "validation BLEU", "learning rate"),
    ]
    with pytest.raises(UsageError) as caught:
        curves_picture({"run": list(records(200))}, scores=["blue"])
    assert caught.value.remedy == "Did you mean bleu?"


def test_the_running_mean_does_not_lag_behind():
    run = [{"kind": "train", "step": step, "loss": float(step)} for step in range(1000)]
    _, smooth = curves_picture({"run": run}).axes[0].lines
    np.testing.assert_allclose(smooth.get_ydata(), smooth.get_xdata(), atol=0.51)


def test_a_panel_without_records_says_so_and_numbers_that_are_none_are_left_out():
    run = [
        {"kind": "train", "step": 1, "loss": math.nan},
        {"kind": "train", "step": 2, "loss": None},
        {"kind": "train", "step": 3, "loss": 2.5},
    ]
    training, validation, *_ = curves_picture({"run": run}).axes
    np.testing.assert_array_equal(training.lines[0].get_xydata(), [[3, 2.5]])
    assert texts(validation.texts) == ["none recorded"]


def test_runs_without_metrics_are_an_error():
    with pytest.raises(UsageError) as caught:
        curves_picture({"run": []})
    assert str(caught.value) == (
        "There are no metrics to draw.\nTrain for some steps first, or name a run that was trained."
    )


def test_a_language_model_is_judged_by_its_bits():
    run = [{"kind": "valid", "step": 5, "loss": 1.5, "perplexity": 4.5, "bits_per_byte": 2.2}]
    panel = curves_picture({"run": run}).axes[2]
    assert panel.get_title(loc="left") == "validation bits per byte"
    np.testing.assert_array_equal(panel.lines[0].get_xydata(), [[5, 2.2]])


def test_a_classifier_is_drawn_with_its_accuracy() -> None:
    records = [{"kind": "valid", "step": 5, "loss": 1.0, "macro_f1": 60.0, "accuracy": 70.0}]
    _, _, panel, _ = curves_picture({"runs/a": records}).axes
    assert panel.get_title(loc="left") == "validation accuracy"


def test_scores_by_length_have_a_line_a_run():
    figure = lengths_picture(["0-9", "10-19"], [300, 1200], {"rnn": [30, 20.5], "transformer": [38, 37]}, label="BLEU")
    [axes] = figure.axes
    assert texts(axes.get_xticklabels()) == ["0-9\n(300)", "10-19\n(1,200)"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [30, 20.5])
    assert texts(figure.legends[0].get_texts()) == ["rnn", "transformer"]
    assert axes.get_ylabel() == "BLEU"


def test_a_range_of_few_sentences_is_a_hollow_point_off_the_line():
    figure = lengths_picture(["0-9", "10-19", "20+"], [30, 10, 9], {"rnn": [30, 20, 35]}, label="BLEU")
    line, hollow = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [30, 20, np.nan])
    np.testing.assert_array_equal(hollow.get_xydata(), [[2, 35]])
    assert hollow.get_markerfacecolor() == "none"


def gradients(step, **norms):
    return {"kind": "gradients", "step": step, "norms": norms}


def test_gradients_of_one_run_are_drawn_at_its_first_and_its_last_record():
    run = [
        {"kind": "train", "step": 1, "loss": 2.0},
        gradients(1, embedding=1.0, decoder=0.1, head=0.5),
        gradients(51, embedding=9.0, decoder=9.0, head=9.0),
        gradients(101, embedding=0.2, decoder=0.02, head=0.3),
    ]
    figure = gradients_picture({"runs/a": run})
    [axes] = figure.axes
    assert axes.get_title(loc="left") == "runs/a: the gradient's norm by layer"
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "norm of the weights' gradient"
    assert axes.get_xlabel() == "layer, from input to output"
    assert texts(figure.legends[0].get_texts()) == ["update 1", "update 101"]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[0, 1.0], [1, 0.1], [2, 0.5]])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [0.2, 0.02, 0.3])
    assert texts(axes.get_xticklabels()) == ["embedding", "decoder", "head"]
    assert texts(gradients_picture({"runs/a": run[:2]}).legends[0].get_texts()) == ["update 1"]


def test_gradients_of_several_runs_are_means_over_all_their_records():
    plain = [gradients(1, **{"stem.layer": 2.0, "head": 1.0}), gradients(2, **{"stem.layer": 4.0, "head": 3.0})]
    deep = [gradients(1, **{"stem.layer": 1.0, "block": 2.0, "block.shortcut": 50.0, "head": 3.0})]
    figure = gradients_picture({"plain": plain, "deep": deep})
    [axes] = figure.axes
    assert axes.get_title(loc="left") == "the gradient's norm by layer: the mean over all recorded updates"
    assert texts(figure.legends[0].get_texts()) == ["plain", "deep"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [3.0, 2.0])
    np.testing.assert_array_equal(
        axes.lines[1].get_xydata(), [[0, 1.0], [1, 2.0], [2, 3.0]]
    )  # it lies beside its block
    figure.canvas.draw()
    assert "head" not in texts(axes.get_xticklabels()), "of different networks, a number is not always the same layer"


def test_norms_that_are_no_numbers_leave_a_gap():
    run = [gradients(1, a=1.0, b=None, c=2.0), gradients(2, a=3.0, b=None, c=None), gradients(3, a=0.0, c=4.0)]
    [axes] = gradients_picture({"one": run, "two": run}).axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [2.0, np.nan, 3.0])
    bad = [gradients(1, a=None, b=None)]
    gradients_picture({"bad": bad}).canvas.draw()


def test_a_run_without_records_of_its_gradients_is_an_error():
    with pytest.raises(UsageError) as caught:
        gradients_picture({"runs/a": [gradients(1, a=1.0)], "runs/b": [{"kind": "train", "step": 1, "loss": 2.0}]})
    assert str(caught.value) == (
        "runs/b has no records of its gradients.\n"
        "Train a run that keeps them, of every 50th update: --set training.record_gradients=50"
    )
