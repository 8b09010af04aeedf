"""The time machine as a picture and as lines: maps, lens and losses of a probe example by step."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from tests.inspection.test_probes import new_run, recorder_of

from regard.cli.main import main
from regard.errors import UsageError
from regard.inspection.probe_picture import MOST_MAPS, probes_picture
from regard.inspection.probe_timeline import ProbeTimeline, read_probes
from regard.inspection.render import save
from regard.runs.folder import RunFolder


def watched(folder: Path, name: str, *, steps: tuple[int, ...] = (0, 10, 20)) -> RunFolder:
    """A run of which two examples were recorded while its weights changed."""
    run = new_run(folder)
    recorder, model = recorder_of(name, run, n=2)
    generator = torch.Generator().manual_seed(1)
    for step in steps:
        recorder.record(model, step)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    lines = [{"kind": "train", "step": step, "loss": 5.0 - step / 10} for step in steps if step]
    run.metrics_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def panels(figure: Any) -> list[Axes]:
    """The axes of a figure and of its parts."""
    return [one for one in figure.findobj(Axes) if isinstance(one, Axes)]


def timeline_of(folder: Path, name: str) -> ProbeTimeline:
    return read_probes(watched(folder, name))


@pytest.mark.parametrize("name", ["transformer", "gpt", "bert-classify", "vit", "rnn-additive", "rnn", "resnet"])
def test_what_was_recorded_is_drawn(name: str, tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, name)
    figure = probes_picture(timeline)
    titles = [axes.get_title() for axes in panels(figure)]
    has_maps = name not in ("rnn", "resnet")
    assert [title for title in titles if title.startswith("step")] == (
        ["step 0", "step 10\nloss 4.000", "step 20\nloss 3.000"] if has_maps else []
    )
    assert save(figure, tmp_path / "probes.png").stat().st_size > 5_000


def test_the_lens_by_step_is_that_of_the_traces(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "transformer")
    traces = timeline.traces(0)
    assert list(traces) == [0, 10, 20]
    expected = np.array([trace.lens(top=1).followed.mean(1) for trace in traces.values()]).T
    figure = probes_picture(timeline)
    [lens] = [axes for axes in panels(figure) if axes.get_title(loc="left").startswith("logit lens")]
    np.testing.assert_allclose(lens.images[0].get_array(), expected, atol=1e-6)
    assert np.ptp(expected, axis=1).max() > 1e-3, "the model changed, and so did its lens"


def test_lines_of_the_lens_by_step(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, "transformer")
    lines = timeline.lens_lines(0, 0, width=200)
    assert lines[0].split() == ["step", "0", "10", "20"]
    assert lines[1].split() == ["loss", "–", "4.000", "3.000"]
    assert lines[2].startswith("target_embedding ") and lines[-1].startswith("output ")
    lens = timeline.trace(20).lens(top=1)
    assert lens.cells(0)[-1] in lines[-2]
    with pytest.raises(UsageError, match="Nothing was recorded at position 99 of probe example 0"):
        timeline.lens_lines(0, 99)


def test_many_steps_are_drawn_in_equal_distances(tmp_path: Path) -> None:
    timeline = read_probes(watched(tmp_path, "gpt", steps=tuple(range(0, 200, 10))))
    titles = [axes.get_title() for axes in panels(probes_picture(timeline))]
    shown = [int(title.split()[1]) for title in titles if title.startswith("step")]
    assert len(shown) == MOST_MAPS and shown[0] == 0 and shown[-1] == 190


def test_a_model_without_attention_has_no_kind_of_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="This model has no attention to look at"):
        probes_picture(timeline_of(tmp_path, "resnet"), kind="self")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, picture = watched(tmp_path, "transformer"), tmp_path / "probes.png"

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        assert main(["inspect", str(run.path), "--probes", *arguments]) == code
        shown = capsys.readouterr()
        return shown.out, shown.err

    out, _ = call("--probe", "1")
    assert out.startswith("probe 1: ") and "probe 0" not in out
    out, _ = call("--lens")
    assert out.count("target_embedding") == 2 and "probe 1: " in out
    out, err = call("--png", str(picture), "--kind", "encoder", "--layer", "0", "--head", "1")
    assert f"drawn: {picture}" in err and picture.stat().st_size > 5_000
    out, _ = call("--json")
    assert [step["step"] for step in json.loads(out)["steps"]] == [0, 10, 20]
    for arguments, message in (
        (("--probe", "7"), "There is no probe example 7 in "),
        (("--walk",), "--walk needs an input, and --probes shows what was recorded."),
        (("--query", "2"), "--query chooses a position of the lens."),
        (("--lens", "--query", "-1"), "Positions count from 0, and none is -1."),
        (("--lens", "--query", "99"), "Nothing was recorded at position 99 of probe example 0."),
    ):
        assert message in call(*arguments, code=2)[1]
