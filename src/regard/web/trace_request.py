"""What a page asks to be traced: an input of a run, with heads cut or a beginning forced; and the trace of it."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from regard.errors import UsageError
from regard.inspection.interventions import Cut
from regard.inspection.trace import Trace
from regard.web.run_inputs import InputExample, accepted_input, image_from

MOST_TEXT = 20_000  # characters of a text
MOST_BEAM = 64
MOST_CUTS, MOST_FORCED = 1000, 2000
Name = Annotated[str, Field(max_length=500)]


class OtherInput(BaseModel):
    """An input that is no plain text: two texts, an image file in base64, or one of the run's examples by its number."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str | None = None
    text_b: str | None = None
    image: str | None = None
    example: int | None = None


class TraceRequest(BaseModel):
    """One input, and what is changed.

    beam:    hypotheses of the search; None for the run's own setting
    ablate:  heads or sublayers that are cut, as `Cut.parse` reads them; what was written stays, unless
    rewrite: the model writes anew without them
    force:   ids of tokens with which the output begins
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    input: str | OtherInput
    beam: Annotated[int, Field(ge=1, le=MOST_BEAM)] | None = None
    ablate: Annotated[list[Name], Field(max_length=MOST_CUTS)] = []
    force: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MOST_FORCED)] = []
    rewrite: bool = False


def asked_trace(run: Any, request: TraceRequest, examples: Callable[[], Sequence[InputExample]]) -> Trace:
    """Trace what is asked for: the input, then what is forced, then what is cut."""
    given, settings, title = _input(run, request.input, examples)
    if request.beam is not None and run.spec.generates:
        settings["beam"] = request.beam
    trace: Trace = run.trace(given, **settings)
    if title:
        trace.title = title
    if request.force:
        trace = trace.forced(request.force)
    for part in request.ablate:
        cut = Cut.parse(part)
        trace = trace.without(cut.module, cut.heads)
    return trace.rewritten() if request.ablate and request.rewrite else trace


def _input(
    run: Any, asked: str | OtherInput, examples: Callable[[], Sequence[InputExample]]
) -> tuple[Any, dict[str, Any], str]:
    """An input as `Run.trace` takes it, settings that belong to it, and its title where it is no text."""
    kind = accepted_input(run)
    if isinstance(asked, str):
        asked = OtherInput(text=asked)
    if asked.example is not None:
        known = examples()
        if not 0 <= asked.example < len(known):
            raise UsageError(f"There is no example {asked.example}: there are {len(known)}.", "They count from 0.")
        one = known[asked.example]
        return one.input, {"texts_b": (one.text_b,)} if one.text_b else {}, one.title
    if asked.image is not None:
        if kind != "image":
            raise UsageError(f"{run.reference} does not read images.", "Give a text.")
        return image_from(asked.image, run), {}, "image"
    text = asked.text or ""
    if (n_characters := max(len(text), len(asked.text_b or ""))) > MOST_TEXT:
        raise UsageError(
            f"The text has {n_characters:,} characters, and at most {MOST_TEXT:,} are taken.", "Give one sentence."
        )
    if kind in ("image", "vectors"):
        what = "images" if kind == "image" else "sequences of vectors"
        raise UsageError(f"{run.reference} reads {what}, not text.", "Choose an example, or give an image file.")
    if not text.strip() and run.spec.name != "language":  # which may begin a document
        raise UsageError("An empty text has nothing to look into.", "Give a sentence.")
    return text, {"texts_b": (asked.text_b,)} if kind == "pair" and asked.text_b is not None else {}, ""
