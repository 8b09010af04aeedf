import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.web.conftest import Client

import regard
from regard.inspection.overview import class_guesses
from regard.runs.folder import RunFolder
from regard.web.packing import unpack

TEXT = "the dog sees red"
Open = Callable[..., Client]


@pytest.fixture(scope="module")
def traced(page: Client, watched: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return page.trace(watched, TEXT)


def error_of(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error", "advice"}
    return answer.status_code, answer.json()["error"]


# --- the session ------------------------------------------------------------------------------------------------------


def test_the_session_tells_what_is_open(page: Client, watched: Path) -> None:
    facts = page.json("/api/session")
    assert (facts["version"], facts["live"], facts["input"]) == (regard.__version__, True, "")
    [run] = facts["runs"]
    loaded = regard.load(watched, threads=1)
    assert (run["name"], run["task"], run["verb"], run["accepts"]) == (str(watched), "translate", "translate", "text")
    assert (run["parameters"], run["step"]) == (loaded.n_parameters, loaded.checkpoint.step)
    assert run["steps"] == [10, 20, 30]
    assert run["probes"] is True and run["generates"] is True and run["problem"] is None
    assert run["example"] == run["examples"][0]["text"] != ""
    assert run["examples"][0]["expected"]


def test_two_runs_and_an_input(open_page: Open, watched: Path, trained: Path) -> None:
    facts = open_page(watched, trained, input="the dog").json("/api/session")
    assert facts["input"] == "the dog"
    assert [run["name"] for run in facts["runs"]] == [str(watched), str(trained)]
    assert facts["runs"][1]["probes"] is False


def test_a_run_without_a_checkpoint_shows_its_probes_and_says_what_is_missing(
    open_page: Open, own_watched: Path
) -> None:
    shutil.rmtree(RunFolder(own_watched).checkpoints)
    RunFolder(own_watched).checkpoints.mkdir()
    page = open_page(own_watched)
    [run] = page.json("/api/session")["runs"]
    assert run["problem"]["error"] == f"{own_watched} has no checkpoint yet."
    assert run["probes"] is True
    assert page.json("/api/probes", run=str(own_watched))["steps"]
    assert error_of(page.post("/api/trace", {"run": str(own_watched), "input": TEXT})) == (
        400,
        f"{own_watched} has no checkpoint yet.",
    )


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_is_what_python_traces(traced: tuple[Any, Any], watched: Path) -> None:
    facts, arrays = traced
    trace = regard.load(watched, threads=1).trace(TEXT)
    assert facts["output"] == trace.output
    assert facts["run"] == {"name": str(watched), "task": "translate", "model": "transformer-tiny", "step": 30}
    assert facts["title"] == TEXT
    path = facts["overview_attention"]
    np.testing.assert_array_equal(arrays[f"weights:{path}"], trace[f"{path}.weights"].values)


def test_a_checkpoint_of_the_run_can_be_named_and_nothing_outside_of_the_session(
    page: Client, watched: Path, trained: Path
) -> None:
    facts, _ = page.trace(f"{watched}@10", TEXT)
    assert facts["run"]["step"] == 10
    for name in (str(trained), f"{trained}@last", "/etc", "", f"{watched}/../run"):
        status, error = error_of(page.post("/api/trace", {"run": name, "input": TEXT}))
        assert (status, error) == (404, f"The run '{name}' is not open here.")
    assert error_of(page.post("/api/trace", {"run": f"{watched}@11", "input": TEXT}))[0] == 400


def test_ablation_keeps_what_was_written_unless_it_is_rewritten(page: Client, watched: Path, traced: Any) -> None:
    facts, _ = traced
    cut = ["decoder.0.cross_attention:0", "decoder.0.cross_attention:1", "encoder.0.feed_forward"]
    kept, _ = page.trace(watched, TEXT, ablate=cut)
    assert (kept["write_ids"], kept["ablated"]) == (facts["write_ids"], cut)
    assert kept["replaced"] == ["decoder.0.cross_attention.heads"] * 2 + ["encoder.0.feed_forward.output"]
    assert kept["steps"][0]["probability"] != facts["steps"][0]["probability"]
    rewritten, _ = page.trace(watched, TEXT, ablate=cut, rewrite=True)
    expected = regard.load(watched, threads=1).trace(TEXT)
    for module, heads in (("decoder.0.cross_attention", [0, 1]), ("encoder.0.feed_forward", [])):
        expected = expected.without(module, heads)
    assert rewritten["output"] == expected.rewritten().output


def test_a_runner_up_can_be_forced(page: Client, watched: Path, traced: Any) -> None:
    facts, _ = traced
    tree = page.json("/api/tree", trace=facts["id"])
    other = next(node for node in tree["nodes"] if node["step"] == 0 and node["token"] != facts["write_ids"][0])
    forced, _ = page.trace(watched, TEXT, force=[other["token"]])
    assert forced["write_ids"][0] == other["token"]
    assert forced["forced"] == [other["token"]]


def test_the_beam_is_the_pages_choice(page: Client, watched: Path) -> None:
    facts, _ = page.trace(watched, TEXT, beam=2)
    assert page.json("/api/tree", trace=facts["id"])["width"] == 2


@pytest.mark.parametrize(
    ("wishes", "error"),
    [
        ({"input": ""}, "An empty text has nothing to look into."),
        ({"input": " \n\t"}, "An empty text has nothing to look into."),
        ({"input": "a" * 20_001}, "The text has 20,001 characters, and at most 20,000 are taken."),
        ({"input": "a", "beam": 0}, "beam: "),
        ({"input": "a", "beam": "2"}, "beam: "),
        ({"input": "a", "ablate": ["decoder.9.cross_attention:0"]}, "The model has no sublayer"),
        (
            {"input": "a", "ablate": ["decoder.0.cross_attention:x"]},
            "'decoder.0.cross_attention:x' does not name heads.",
        ),
        ({"input": "a", "force": [10**6]}, "There is no token 1000000"),
        ({"input": "a", "force": [-1]}, "force.0: "),
        ({"input": {"image": "aGk="}}, "RUN does not read images."),
        ({"input": {"example": 99}}, "There is no example 99"),
        ({"input": "a", "rewrtie": True}, "rewrtie: "),
        ({"input": 7}, "input: "),
        ({}, "input: "),
    ],
)
def test_a_trace_that_cannot_be_made_is_refused_in_two_lines(
    page: Client, watched: Path, wishes: dict[str, Any], error: str
) -> None:
    status, found = error_of(page.post("/api/trace", {"run": str(watched), **wishes}))
    assert status == 400
    assert found.startswith(error.replace("RUN", str(watched)))


def test_a_text_that_is_too_long_for_the_model_is_refused(open_page: Open, classify_run: Path, mask_run: Path) -> None:
    facts, _ = open_page(classify_run).trace(classify_run, "good " * 300)  # which is cut, as where it predicts
    assert len(facts["positions"][facts["own"]]["labels"]) <= 40
    status, error = error_of(
        open_page(mask_run).post("/api/trace", {"run": str(mask_run), "input": "the [MASK] " * 300})
    )
    assert status == 400 and error


def test_only_the_last_traces_are_kept(open_page: Open, watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.web.session.MOST_TRACES", 2)
    page = open_page(watched)
    ids = [page.trace(watched, TEXT)[0]["id"] for _ in range(2)]
    page.json("/api/lens", trace=ids[0])  # which makes it the newest
    ids.append(page.trace(watched, TEXT)[0]["id"])
    assert [page.get("/api/lens", trace=id).status_code for id in ids] == [200, 404, 200]
    monkeypatch.setattr("regard.web.session.MOST_TRACE_BYTES", 1)
    monkeypatch.setattr("regard.web.session.MOST_TRACES", 12)
    for _ in range(3):
        ids.append(page.trace(watched, TEXT)[0]["id"])
    assert [page.get("/api/lens", trace=id).status_code for id in ids] == [404, 404, 404, 404, 200, 200]


# --- of a trace -------------------------------------------------------------------------------------------------------


def test_everything_of_a_trace_is_what_python_says(page: Client, watched: Path, traced: Any) -> None:
    id, path = traced[0]["id"], traced[0]["overview_attention"]
    trace = regard.load(watched, threads=1).trace(TEXT)

    def same(found: Any, expected: Any) -> None:
        assert found == json.loads(json.dumps(expected))

    same(page.json("/api/lens", trace=id, top=3), trace.lens(top=3).to_json())
    same(page.json("/api/contributions", trace=id, position=1), trace.contributions(position=1).to_json())
    same(page.json("/api/contributions", trace=id, position=1, token=7), trace.contributions(7, position=1).to_json())
    same(page.json("/api/checks", trace=id), trace.checks().to_json())
    assert page.json("/api/checks", trace=id)["passed"]
    tree = page.json("/api/tree", trace=id)
    same(
        [{**node, "attention": None} for node in tree["nodes"]],
        [{**node, "attention": None} for node in trace.beam_tree().to_json()["nodes"]],
    )
    gradients = page.json("/api/gradients", trace=id, position=1)
    np.testing.assert_array_equal(np.float32(gradients["values"]), trace.gradients(position=1).values)
    facts, arrays = page.packed("/api/rollout", trace=id, stack="decoder")
    np.testing.assert_array_equal(arrays["rollout"], trace.rollout("decoder").values)
    facts, arrays = page.packed("/api/flow", trace=id, stack="decoder")
    np.testing.assert_array_equal(arrays["flow"], trace.flow("decoder").values)
    assert facts["labels"] == list(trace.reading.own.labels)
    facts, arrays = page.packed("/api/row", trace=id, attention=path, head=1, query=2)
    np.testing.assert_array_equal(
        arrays["weights"], trace.cell(path, head=1, query=2, key=0).weights.astype(np.float32)
    )
    _, arrays = page.packed("/api/weights", trace=id, attention=path)
    np.testing.assert_array_equal(arrays[f"weights:{path}"], trace[f"{path}.weights"].values)
    facts, arrays = page.packed("/api/embedding", trace=id)
    assert [own["name"] for own in facts["embeddings"]] == ["source_embedding", "target_embedding"]
    np.testing.assert_array_equal(arrays["source_embedding.sum"], trace["source_embedding.sum"].values)
    program = page.json("/api/python", trace=id, attention=path, head=1, query=2, key=0)["program"]
    assert program == trace.cell(path, head=1, query=2, key=0).python()


def test_two_traces_are_compared(page: Client, watched: Path, traced: Any) -> None:
    first = traced[0]["id"]
    second = page.trace(f"{watched}@10", TEXT)[0]["id"]
    for a, b, differs in ((first, first, False), (first, second, True)):
        answer = page.post("/api/difference", {"a": a, "b": b})
        assert answer.status_code == 200
        facts, arrays = unpack(answer.content)
        assert (facts["largest"] > 0) is differs
        maps = [array for name, array in arrays.items() if name.startswith("weights:")]
        assert any(np.nan_to_num(array).any() for array in maps) is differs
    trace = regard.load(watched, threads=1).trace(TEXT)
    assert facts["norms"] == list(trace.residual_norms().labels["sublayer"])
    np.testing.assert_array_equal(arrays["norms:a"], trace.residual_norms().values)


def test_what_is_not_there_is_refused(page: Client, traced: Any) -> None:
    id, path = traced[0]["id"], traced[0]["overview_attention"]
    assert error_of(page.get("/api/lens", trace="t99")) == (
        404,
        "The trace 't99' is no longer here: only the last 12 are kept.",
    )
    assert error_of(page.post("/api/difference", {"a": id, "b": "t99"}))[0] == 404
    for query, error in (
        ({"attention": "nonsense", "head": 0, "query": 0}, "There is no attention 'nonsense' in this trace."),
        ({"attention": path, "head": 9, "query": 0}, f"{path} has the heads 0 to 1, and no head 9."),
        ({"attention": path, "head": 0, "query": 99}, f"{path} has the queries 0 to"),
        ({"attention": path, "head": -1, "query": 0}, "head: "),
        ({"attention": path, "head": "x", "query": 0}, "head: "),
        ({"attention": path, "head": 0}, "query: "),
    ):
        status, found = error_of(page.get("/api/row", trace=id, **query))
        assert status == 400
        assert found.startswith(error)
    assert error_of(page.get("/api/weights", trace=id, attention="logits"))[0] == 400
    assert error_of(page.get("/api/map", trace=id, tap="logits")) == (400, "logits is not a feature map.")
    assert error_of(page.get("/api/rollout", trace=id, stack="nonsense"))[0] == 400
    assert error_of(page.get("/api/nonsense")) == (404, "There is nothing at /api/nonsense.")


def test_what_a_model_does_not_have_is_said_in_the_place_of_its_numbers(open_page: Open, mask_run: Path) -> None:
    page = open_page(mask_run)  # post-norm
    id = page.trace(mask_run, "the dog is [MASK] today .")[0]["id"]
    found = page.json("/api/contributions", trace=id)
    assert found["refused"].startswith("The shares of a logit are for pre-norm models")
    assert found["advice"].startswith("Ablate instead")


# --- other kinds of runs ----------------------------------------------------------------------------------------------


def test_images_come_as_files_in_base64(open_page: Open, image_run: Path) -> None:
    page = open_page(image_run)
    [run] = page.json("/api/session")["runs"]
    assert (run["accepts"], run["example"]) == ("image", "")
    file = next((image_run.parent / "train" / "lying").iterdir())
    encoded = base64.b64encode(file.read_bytes()).decode()
    for image in (encoded, f"data:image/png;base64,{encoded}"):
        facts, arrays = page.trace(image_run, {"image": image})
        trace = regard.load(image_run, threads=1).trace(str(file))
        assert facts["classes"] == [vars(one) for one in class_guesses(trace)]
        np.testing.assert_array_equal(arrays["image"], trace.reading.image)
        _, found = page.packed("/api/map", trace=facts["id"], tap=facts["feature_maps"][0])
        np.testing.assert_array_equal(found["map"], trace[facts["feature_maps"][0]].values)
    for image, error in (("%%%", "The image is not base64."), (base64.b64encode(b"hello").decode(), "The image")):
        status, found_error = error_of(page.post("/api/trace", {"run": str(image_run), "input": {"image": image}}))
        assert status == 400
        assert found_error.startswith(error)
        assert "/tmp" not in found_error
    assert error_of(page.post("/api/trace", {"run": str(image_run), "input": "a dog"})) == (
        400,
        f"{image_run} reads images, not text.",
    )
    assert error_of(page.get("/api/tokens", run=str(image_run), text="a"))[0] == 400


def test_an_image_named_at_the_start_is_the_first_example(open_page: Open, image_run: Path) -> None:
    file = next((image_run.parent / "train" / "standing").iterdir())
    page = open_page(image_run, input=str(file))
    [run] = page.json("/api/session")["runs"]
    assert run["examples"][0]["title"] == file.name
    facts, _ = page.trace(image_run, {"example": 0})
    assert facts["title"] == file.name


def test_pairs_vectors_words_and_prompts(
    open_page: Open, pairs_run: Path, vectors_run: Path, tag_run: Path, mask_run: Path
) -> None:
    page = open_page(pairs_run, vectors_run, tag_run, mask_run)
    runs = {run["name"]: run for run in page.json("/api/session")["runs"]}
    assert [run["accepts"] for run in runs.values()] == ["pair", "vectors", "text", "text"]
    facts, _ = page.trace(pairs_run, {"text": "a dog", "text_b": "a cat"})
    assert " ".join(label.strip() for label in facts["positions"][facts["own"]]["labels"]).count("a") >= 2
    assert page.trace(tag_run, "Anna visits Rome")[0]["output"]
    assert runs[str(mask_run)]["blank"] == "[MASK]"
    assert page.trace(mask_run, "the dog is [MASK] today .")[0]["output"]
    assert error_of(page.post("/api/trace", {"run": str(vectors_run), "input": "text"})) == (
        400,
        f"{vectors_run} reads sequences of vectors, not text.",
    )


# --- of a run ---------------------------------------------------------------------------------------------------------


def test_the_tokenizer_shows_its_merges(page: Client, watched: Path) -> None:
    found = page.json("/api/tokens", run=str(watched), text="the houses")
    assert "".join(token["text"] for token in found["tokens"]) == "the houses"
    assert [token["piece"] for token in found["tokens"]][-len(found["merges"][-1]) :] == found["merges"][-1]
    assert found["merges"][0] == [" ", "h", "o", "u", "s", "e", "s"]
    assert page.json("/api/tokens", run=str(watched), text="")["tokens"] == []


def test_neighbours_of_a_token(page: Client, watched: Path) -> None:
    found = page.json("/api/neighbours", run=str(watched), token="dog", n=3)
    assert len(found["neighbours"]) == 3
    id = found["neighbours"][0]["id"]
    assert len(page.json("/api/neighbours", run=str(watched), id=id)["neighbours"]) == 10
    assert error_of(page.get("/api/neighbours", run=str(watched), token="hippopotamus"))[0] == 400


def test_positions(page: Client, watched: Path) -> None:
    facts, arrays = page.packed("/api/positions", run=str(watched), n=4, d=4, base=100)
    assert facts["kind"] == "sinusoidal"
    # "I am a robot", d = 4, n = 100 (Saeed 2022): the rows of the lectures' table.
    np.testing.assert_allclose(arrays["table"][1], [0.84147, 0.54030, 0.09983, 0.99500], atol=1e-5)
    np.testing.assert_allclose(arrays["dot"], arrays["table"] @ arrays["table"].T, atol=1e-6)
    assert arrays["distances"].shape == (4, 4)
    assert page.packed("/api/positions", kind="rotary", n=5, d=6)[1]["table"].shape == (5, 6)
    for query in ({"kind": "sinusodal"}, {"kind": "learned"}, {"kind": "learned", "run": str(watched)}, {}):
        assert error_of(page.get("/api/positions", **query))[0] == 400
    for query in ({"n": 0}, {"n": 10**6}, {"d": 1}, {"base": 0}, {"kind": "rotary", "d": 7}):
        assert error_of(page.get("/api/positions", **{"kind": "sinusoidal", **query}))[0] == 400


def test_a_model_of_learned_positions_shows_its_own(open_page: Open, mask_run: Path) -> None:
    facts, arrays = open_page(mask_run).packed("/api/positions", run=str(mask_run), n=8)
    assert facts["kind"] == "learned"
    assert arrays["table"].shape == (8, 32)


def test_probes_are_read_from_their_files(page: Client, watched: Path) -> None:
    found = page.json("/api/probes", run=str(watched))
    assert [step["step"] for step in found["steps"]] == [0, 10, 20, 30]
    answer = page.post("/api/probe", {"run": str(watched), "step": 20, "probe": 1})
    facts, arrays = unpack(answer.content)
    assert facts["live"] is False
    assert facts["run"]["step"] == 20
    assert facts["output"] == found["steps"][2]["outputs"][1]
    assert facts["steps"][0]["probability"] > 0
    assert np.isnan(arrays["weights:decoder.0.self_attention"][0, 0, 1])
    refused = page.json("/api/tree", trace=facts["id"])["refused"]
    assert refused == "A search needs the model, and the model is not here: the trace was read from a file."
    assert error_of(page.post("/api/probe", {"run": str(watched), "step": 21}))[0] == 400
    assert error_of(page.post("/api/probe", {"run": str(watched), "step": 20, "probe": 9}))[0] == 400


def test_a_probe_shows_what_the_model_of_that_step_shows(page: Client, watched: Path) -> None:
    kept, kept_arrays = unpack(page.post("/api/probe", {"run": str(watched), "step": 20, "probe": 0}).content)
    live, live_arrays = page.trace(f"{watched}@20", {"example": 0}, beam=1)
    assert (kept["output"], kept["write_ids"]) == (live["output"], live["write_ids"])
    assert [step["writes"] for step in kept["steps"]] == [step["writes"] for step in live["steps"]]
    for ours, theirs in zip(kept["steps"], live["steps"], strict=True):
        assert ours["probability"] == pytest.approx(theirs["probability"], rel=1e-4)
        assert [one["text"] for one in ours["rivals"]] == [one["text"] for one in theirs["rivals"]]
    for path, own in live["attentions"].items():
        np.testing.assert_array_equal(
            np.isnan(kept_arrays[f"weights:{path}"]), np.isnan(live_arrays[f"weights:{path}"]), err_msg=path
        )
        halves = live_arrays[f"weights:{path}"].astype(np.float16)  # as a probe's file keeps them
        np.testing.assert_array_equal(kept_arrays[f"weights:{path}"], halves, err_msg=path)
        assert [head["label"] for head in kept["attentions"][path]["heads"]] == [head["label"] for head in own["heads"]]
    np.testing.assert_allclose(kept_arrays["norms"], live_arrays["norms"], rtol=2e-3)
    assert kept["norms"]["sublayers"] == live["norms"]["sublayers"]


def test_a_damaged_trace_leaves_the_rest_working(open_page: Open, own_watched: Path) -> None:
    damaged = RunFolder(own_watched).traces / "step-00000020" / "probe-1.trace"
    damaged.write_bytes(damaged.read_bytes()[:100])
    page = open_page(own_watched)
    found = page.json("/api/probes", run=str(own_watched))
    assert found["steps"][2]["outputs"][0] is not None
    assert found["steps"][2]["outputs"][1] is None
    assert found["notes"][0].startswith("step-00000020/probe-1.trace was skipped")
    assert error_of(page.post("/api/probe", {"run": str(own_watched), "step": 20, "probe": 1}))[0] == 400
    assert page.post("/api/probe", {"run": str(own_watched), "step": 20, "probe": 0}).status_code == 200
    assert page.trace(own_watched, TEXT)[0]["output"]


def test_importance_is_measured_in_the_background(open_page: Open, own_watched: Path, trained: Path) -> None:
    watched = own_watched
    page = open_page(watched, trained)
    assert page.json("/api/importance", run=str(watched)) == {"state": "none"}
    begun = page.post("/api/importance", {"run": str(watched), "examples": 5})
    assert begun.status_code == 202
    assert (begun.json()["state"], begun.json()["of"]) == ("running", 6)
    session: Any = page.app.app.state.session
    again = page.post("/api/importance", {"run": str(watched), "examples": 5})
    session.measurement(str(watched)).wait()
    if again.status_code != 202:  # it was quick otherwise
        assert error_of(again) == (409, f"The heads of {watched} are being measured.")
    found = page.json("/api/importance", run=str(watched))
    assert (found["state"], found["done"], found["error"]) == ("done", 6, None)
    assert found["grid"]["parts"][0]["part"] == "encoder.0.self_attention:0"
    assert error_of(page.post("/api/importance", {"run": str(trained)})) == (
        400,
        f"The validation data of {trained} is not in files of its own, or no longer there.",
    )


def test_a_measurement_that_fails_says_why(open_page: Open, watched: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.en").touch()
    (tmp_path / "empty.de").touch()
    page = open_page(watched, data=[str(tmp_path / "empty.en"), str(tmp_path / "empty.de")])
    page.post("/api/importance", {"run": str(watched)})
    session: Any = page.app.app.state.session
    session.measurement(str(watched)).wait()
    found = page.json("/api/importance", run=str(watched))
    assert found["state"] == "failed"
    assert found["error"]


def test_what_was_measured_stays_with_the_run(open_page: Open, own_watched: Path, corpus: tuple[str, str]) -> None:
    page = open_page(own_watched, data=corpus)
    page.post("/api/importance", {"run": str(own_watched), "examples": 5})
    page.app.app.state.session.measurement(str(own_watched)).wait()
    found = page.json("/api/importance", run=str(own_watched))
    assert (found["state"], found["files"]) == ("done", ["train.en", "train.de"])

    later = open_page(own_watched)
    assert later.json("/api/importance", run=str(own_watched)) == found
    assert later.json("/api/importance", run=f"{own_watched}@10") == {"state": "none"}  # another checkpoint
    [kept] = (own_watched / "traces").glob("importance-*.json")
    for damage in (b"{", b"[]", b'{"format": 2}', kept.read_bytes().replace(b'"parts":', b'"pieces":')):
        kept.write_bytes(damage)
        assert later.json("/api/importance", run=str(own_watched)) == {"state": "none"}


def test_what_the_terminal_measured_is_on_the_page(
    open_page: Open, own_watched: Path, corpus: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from regard.cli.main import main

    call = ["inspect", str(own_watched), "--heads", "--data", *corpus, "--examples", "5", "--threads", "1", "--json"]
    assert main(call) == 0
    told = json.loads(capsys.readouterr().out)
    assert open_page(own_watched).json("/api/importance", run=str(own_watched))["grid"] == told


def test_a_run_that_cannot_be_written_to_is_measured_all_the_same(
    open_page: Open, own_watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(own_watched)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    page.post("/api/importance", {"run": str(own_watched), "examples": 5})
    page.app.app.state.session.measurement(str(own_watched)).wait()
    assert page.json("/api/importance", run=str(own_watched))["state"] == "done"
    assert not list((own_watched / "traces").glob("importance-*"))
