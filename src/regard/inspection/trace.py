"""The trace: every tensor that a model shows at its taps while it reads one input and writes its output.

    trace = run.trace("The small dog sees a red house.", beam=4)
    trace["decoder.2.cross_attention.weights"]      an array with named axes: head, target, source

Recorded is one forward pass over the input and all that was written, by the model's own taps; `checks` compares it with
cached decoding, which wrote it. What would take too much memory is left out, and recorded when it is asked for by name.
What is computed from a trace stands in files of its own (cell, lens, checks, …); its methods are doors to them.
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.errors import UsageError, did_you_mean
from regard.inspection.axes import joined, named
from regard.inspection.interventions import Cut, Intervention, as_patches, intervening
from regard.inspection.named_array import NamedArray
from regard.parts.score_formula import ScoreFormula
from regard.parts.taps import listening
from regard.tasks.options import GenerationOptions, Options
from regard.tasks.reading import Reading
from regard.tasks.results import Result
from regard.tasks.task import UsableTask

if TYPE_CHECKING:
    from regard.inspection.beam_tree import BeamTree
    from regard.inspection.cell import Cell
    from regard.inspection.checks import Checks
    from regard.inspection.contributions import Contributions
    from regard.inspection.difference import Difference
    from regard.inspection.head_labels import HeadLabel
    from regard.inspection.lens import Lens

MOST_BYTES = 64 * 2**20  # that are kept of one pass; more is recorded on demand


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a trace is of: a model at work on one input, under interventions, if there are any."""

    task: UsableTask[Any]
    model: nn.Module
    input: Any
    options: Options
    interventions: tuple[Intervention, ...] = ()

    def predict(self) -> Any:
        """What the model says of the input, by our own search."""
        options = self.options
        if isinstance(options, GenerationOptions):
            options = replace(options, engine=None)
        with intervening(self.model, self.interventions):
            [result] = self.task.predict(self.model, [self.input], options)
        return result

    def reading(self, result: Any) -> Reading:
        """The pass that can be repeated, over the input and what was said of it."""
        return self.task.reading(self.model, self.input, result, self.options)


class Trace(Mapping[str, NamedArray]):
    """The tensors of one pass by the names of their taps, in the order in which they were computed.

    result:    what the model said
    reading:   what stands at each position
    formulas:  by the path of each attention, how its scores come about
    subject:   the model at work, from which more can be recorded; None for a trace that was read from a file
    replaced:  the taps whose tensors are not what the network made of those before them: cut, or patched
    full_precision:  whether the numbers are as they were computed; else they were kept as float16
    """

    def __init__(
        self,
        *,
        title: str,
        output: str,
        reading: Reading,
        arrays: Mapping[str, NamedArray],
        left_out: Mapping[str, tuple[int, ...]],
        formulas: Mapping[str, ScoreFormula],
        result: Result | None = None,
        subject: Subject | None = None,
        replaced: Sequence[str] = (),
        full_precision: bool = True,
    ) -> None:
        self.title = title
        self.output = output
        self.reading = reading
        self.formulas = formulas
        self.result = result
        self.subject = subject
        self.replaced = tuple(replaced)
        self.full_precision = full_precision
        self._arrays = dict(arrays)
        self._left_out = dict(left_out)
        self._order = [*arrays, *(name for name in left_out if name not in arrays)]

    def __getitem__(self, name: str) -> NamedArray:
        if name not in self._arrays:
            if name not in self._left_out:
                raise UsageError(f"There is no tap '{name}' in this trace.", did_you_mean(name, self._order))
            self._arrays.update(self._record_more([name]))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays or name in self._left_out

    def names(self, pattern: str = "*") -> list[str]:
        """The names of taps, all or those that match a pattern such as `decoder.*.weights`."""
        return [name for name in self._order if fnmatch.fnmatchcase(name, pattern)]

    @property
    def kept(self) -> list[str]:
        """The names of those that are held in memory."""
        return list(self._arrays)

    @property
    def left_out(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of those that are not."""
        return {name: shape for name, shape in self._left_out.items() if name not in self._arrays}

    def record(self, *patterns: str) -> None:
        """Record what matches one of the patterns and was left out, in one more pass."""
        matching = {name for pattern in patterns for name in self.names(pattern)}
        wanted = [name for name in self._order if name in matching and name not in self._arrays]
        if wanted:
            self._arrays.update(self._record_more(wanted))

    def _record_more(self, names: Sequence[str]) -> dict[str, NamedArray]:
        subject = self.live(f"{names[0]} was left out of the trace, as it is large, and")
        return record_named(subject, self.reading, names)

    def live(self, why: str) -> Subject:
        """The model at work; refuse what needs it of a trace that was read from a file."""
        if self.subject is None:
            raise UsageError(
                f"{why} the model is not here: the trace was read from a file.",
                "Load the run, and trace the input again: regard.load(RUN).trace(…)",
            )
        return self.subject

    # --- looked at ---------------------------------------------------------------------------------------------------

    def attentions(self) -> list[str]:
        """The paths of the modules whose attention weights there are."""
        return [name.removesuffix(".weights") for name in self._order if name.endswith(".weights")]

    def cell(self, attention: str, *, head: int = 0, query: int, key: int) -> "Cell":
        """The arithmetic of one attention weight, term by term; positions count from 0."""
        from regard.inspection.cell import explain_cell

        return explain_cell(self, attention, head=head, query=query, key=key)

    def lens(self, top: int = 5) -> "Lens":
        """What the output layer says of the residual stream after each sublayer; its last row is the model's output.

        Of a trace that was read from a file, what was kept of it there.
        """
        from regard.inspection.lens import read_lens
        from regard.inspection.lens_arrays import stored_lens

        return stored_lens(self, top) if self.subject is None else read_lens(self, top=top)

    def residual_norms(self) -> NamedArray:
        """The length of the residual stream's vectors: (sublayer, position)."""
        from regard.inspection.residual_stream import residual_norms

        return residual_norms(self)

    def contributions(self, token: str | int = "", *, position: int = -1) -> "Contributions":
        """What each head and sublayer adds to the logit of a token at a position; for pre-norm models."""
        from regard.inspection.contributions import contributions

        return contributions(self, token, position=position)

    def gradients(self, token: str | int = "", *, position: int = -1, stack: str = "") -> NamedArray:
        """How steeply the logit of a token at a position rises with the states of each layer: (sublayer, position).

        stack: encoder or decoder; by default that from which the logits are read
        """
        from regard.inspection.gradients import gradient_norms

        return gradient_norms(self, token, position=position, stack=stack)

    def head_labels(self) -> "list[HeadLabel]":
        """What each head attends to: the previous token, itself, separators, …; with the numbers behind it."""
        from regard.inspection.head_labels import label_heads

        return label_heads(self)

    def rollout(self, stack: str = "") -> NamedArray:
        """Attention rollout (Abnar & Zuidema 2020): the weights of all layers, multiplied, with the residual connection."""
        from regard.inspection.rollout import rollout

        return rollout(self, stack)

    def flow(self, stack: str = "") -> NamedArray:
        """Attention flow (Abnar & Zuidema 2020): the most that can pass from a position through all layers."""
        from regard.inspection.rollout import flow

        return flow(self, stack)

    def beam_tree(self, beginning: Sequence[int] = ()) -> "BeamTree":
        """The search as a tree: kept, pruned and finished hypotheses; `beginning`: tokens that are forced first."""
        from regard.inspection.beam_tree import grow_tree

        return grow_tree(self, beginning)

    def tree_attention(self, tree: "BeamTree", attention: str = "") -> NamedArray:
        """What each node of a beam tree attended to while it was written: (node, source)."""
        from regard.inspection.tree_attention import tree_attention

        return tree_attention(self, tree, attention)

    def checks(self) -> "Checks":
        """Whether the numbers hold: rows sum to 1, heads add up, cached decoding and the fused kernel give the same."""
        from regard.inspection.checks import check_trace

        return check_trace(self)

    # --- changed and compared ------------------------------------------------------------------------------------------

    def without(self, module: str, heads: Sequence[int] = ()) -> "Trace":
        """The same pass without some heads of an attention, or without a sublayer: ablation. What is written stays."""
        return self._changed((Cut(module=module, heads=tuple(heads)),))

    def patched(self, values: Mapping[str, Any]) -> "Trace":
        """The same pass with other tensors in the places of taps: activation patching. What is written stays."""
        return self._changed(as_patches(values))

    def _changed(self, interventions: tuple[Intervention, ...]) -> "Trace":
        subject = self.live("An intervention needs the model, and")
        for one in interventions:
            if isinstance(one, Cut):
                one.tap_of(subject.model)
            elif one.name not in self:
                raise UsageError(f"There is no tap '{one.name}' in this trace.", did_you_mean(one.name, self._order))
        changed = replace(subject, interventions=(*subject.interventions, *interventions))
        return _recorded(changed, self.reading, self.result, title=self.title, output=self.output)

    def forced(self, beginning: Sequence[int]) -> "Trace":
        """A trace of what the model writes behind a given beginning of the output, token by token as ids; searched for
        as `beam_tree` shows it."""
        from regard.inspection.beam_tree import search_behind

        ids, subject = tuple(beginning), self.live("To force a beginning needs the model, and")
        found = search_behind(self, ids)
        assert self.reading.result is not None
        result = self.reading.result(found.found[0])
        reading = subject.reading(result)
        watch = reading.watch
        assert watch is not None
        # So that its own search, too, begins like it.
        reading = replace(reading, beginning=ids, watch=lambda own: watch(own or ids))
        return _recorded(subject, reading, result, title=self.title, output="\n".join(result.lines()))

    def rewritten(self) -> "Trace":
        """A trace of what the model writes under the interventions of this one."""
        return trace_input(self.live("To write anew needs the model, and"), title=self.title)

    def difference(self, other: "Trace") -> "Difference":
        """What differs between two traces of one input: tensors, logits, output."""
        from regard.inspection.difference import compare_traces

        return compare_traces(self, other)

    # --- kept and shown --------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What it is of, its tokens with their offsets, which maps and taps there are, and what can be asked of it."""
        from regard.inspection.trace_json import trace_json

        return trace_json(self)

    def save(self, path: str | Path, *, full_precision: bool = False, lens: int | None = None) -> Path:
        """Write the trace as one file, float16 unless `full_precision`; `regard.load_trace` reads it.

        lens: how many of the likeliest the logit lens keeps of each state, 0 for none; by default 5, unless reading the
        lens of so many positions would take more than about a second
        """
        from regard.inspection.trace_file import save_trace

        return save_trace(self, path, full_precision=full_precision, lens=lens)

    def __repr__(self) -> str:
        return f"<Trace of '{self.title}': {len(self)} taps, '{self.output}'>"


def trace_input(subject: Subject, *, title: str = "") -> Trace:
    """Let a model say something of an input, and record the pass."""
    result = subject.predict()
    title = title or (str(subject.input) if isinstance(subject.input, str | Path) else "input")
    return _recorded(subject, subject.reading(result), result, title=title, output="\n".join(result.lines()))


def read_by(trace: Trace, subject: Subject) -> Trace:
    """A trace of the same pass by another network: over the same input and all that was written."""
    reading = subject.reading(trace.result)
    return _recorded(subject, reading, trace.result, title=trace.title, output=trace.output)


def _recorded(subject: Subject, reading: Reading, result: Any, *, title: str, output: str) -> Trace:
    arrays, left_out = record_pass(subject, reading, ["*"], most_bytes=MOST_BYTES)
    if not arrays and not left_out:
        raise UsageError(
            "This network shows nothing of itself: it has no taps.",
            "Let its modules pass tensors through regard.parts.taps.tap, as docs/taps.md shows.",
        )
    formulas = {
        path: module.formula()
        for path, module in subject.model.named_modules()
        if hasattr(module, "formula") and (f"{path}.weights" in arrays or f"{path}.weights" in left_out)
    }
    return Trace(
        title=title,
        output=output,
        reading=reading,
        arrays=arrays,
        left_out=left_out,
        formulas=formulas,
        result=result,
        subject=subject,
        replaced=[one.tap_of(subject.model) for one in subject.interventions],
    )


@dataclass
class _Recorder:
    """Keeps what is heard, up to so many bytes; of the rest, names and shapes."""

    most_bytes: int | None
    calls: dict[str, list[Tensor]] = field(default_factory=dict)
    left_out: dict[str, tuple[int, ...]] = field(default_factory=dict)
    n_bytes: int = 0

    def keep(self, name: str, tensor: Tensor) -> None:
        n_bytes = tensor.numel() * 4
        if self.most_bytes is not None and self.n_bytes + n_bytes > self.most_bytes:
            self.left_out[name] = tuple(tensor.shape[1:])
            # What came in the steps before is of no use without the rest.
            self.n_bytes -= sum(4 * one.numel() for one in self.calls.pop(name, []))
        elif name not in self.left_out:
            self.n_bytes += n_bytes
            self.calls.setdefault(name, []).append(tensor.detach())


@torch.inference_mode()
def record_pass(
    subject: Subject, reading: Reading, patterns: Sequence[str], *, most_bytes: int | None
) -> tuple[dict[str, NamedArray], dict[str, tuple[int, ...]]]:
    """Run the forward pass once; return the arrays of the taps that match, and names and shapes of what was too much.

    Interventions come first, so that what is recorded is what goes on.
    """
    recorder = _Recorder(most_bytes)
    with intervening(subject.model, subject.interventions), listening(subject.model, patterns, recorder.keep):
        reading.forward()
    arrays = {name: named(name, joined(name, calls), reading) for name, calls in recorder.calls.items()}
    return arrays, recorder.left_out


def record_named(subject: Subject, reading: Reading, names: Sequence[str]) -> dict[str, NamedArray]:
    """Record some taps in a pass that is the first one bit for bit: all are listened to, so that the same kernels run."""
    with listening(subject.model, "*", lambda name, tensor: None):
        return record_pass(subject, reading, names, most_bytes=None)[0]
