"""The residual stream of a trace: the taps that show it, the lengths of its vectors, and which of its logits is asked about.

It is that of the stack from which the logits are read: the decoder's, or the only encoder's. Its states are, in order, the
embedding and what stands there after each sublayer. Convolutional networks have feature maps instead.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError, did_you_mean
from regard.inspection.named_array import NamedArray, Values
from regard.inspection.trace import Trace

# By stack, the taps of its embedding: where a norm follows the sum, what leaves it.
_STACKS = {"decoder": ("target_embedding.sum", "embedding.sum"), "encoder": ("embedding.output", "embedding.sum")}
_FEATURE_MAPS = (("stem.output", "stage.*.block.*.output"), ("layers.*.features",))  # of a ResNet, of a ConvNet
_N_NEAR = 1_000  # of the likeliest tokens, among which a misspelt one is looked for


def stream_taps(trace: Trace) -> list[str]:
    """The taps of the residual stream, in order; refuse a model that has none."""
    found = _vectors(trace)
    if not found:
        raise UsageError(
            "This model has no residual stream.",
            "Use a Transformer: transformer-tiny, gpt-nano, bert-tiny, vit-tiny, …",
        )
    return found


def stream_or_map_taps(trace: Trace) -> list[str]:
    """The taps of the residual stream; of a convolutional network, those of its feature maps, block by block."""
    maps = ([name for pattern in patterns for name in trace.names(pattern)] for patterns in _FEATURE_MAPS)
    return _vectors(trace) or next((found for found in maps if found), []) or stream_taps(trace)


def _vectors(trace: Trace) -> list[str]:
    # What writes of images is a network inside the network.
    inside = "text." if trace.names("text.*") else ""
    for stack, embeddings in _STACKS.items():
        if residuals := trace.names(f"{inside}{stack}.*_residual.output"):
            first = [f"{inside}{name}" for name in embeddings if f"{inside}{name}" in trace]
            return [*first[:1], *residuals]
    return []


def sublayer_name(tap: str) -> str:
    """The sublayer behind which a state of the stream stands: `decoder.0.self_attention`, `embedding`, `stem`."""
    return tap.removesuffix(".norm").rpartition(".")[0].removesuffix("_residual")


def vector_lengths(state: Values) -> Values:
    """The lengths (T,) of vectors (T, D); of a feature map (C, H, W), the mean over its pixels of their vectors' lengths."""
    state = state.astype(np.float64)
    if state.ndim == 3:
        return np.asarray(np.linalg.norm(state, axis=0).mean())
    return np.asarray(np.linalg.norm(state, axis=-1))


def by_sublayer(trace: Trace, taps: list[str], lengths: list[Values]) -> NamedArray:
    """Numbers of each state of the stream, as an array: (sublayer, position); of feature maps (sublayer,)."""
    axes: tuple[str, ...] = ("sublayer", *trace[taps[0]].axes[:1]) if lengths[0].ndim else ("sublayer",)
    labels = {"sublayer": tuple(map(sublayer_name, taps))}
    if lengths[0].ndim:
        labels |= {axes[1]: trace[taps[0]].labels[axes[1]]} if axes[1] in trace[taps[0]].labels else {}
    return NamedArray(np.array(lengths, np.float32), axes, labels)


def residual_norms(trace: Trace) -> NamedArray:
    """The length (Euclidean norm) of the residual stream's vectors: (sublayer, position).

    Of a convolutional network (sublayer,): the mean over the pixels of a feature map of their channel vectors' lengths.
    """
    if trace.subject is None and (kept := trace.names("*.norm")):  # of a file that has no room for the vectors
        return by_sublayer(trace, kept, [trace[name].values for name in kept])
    taps = stream_or_map_taps(trace)
    trace.record("*_residual.output")
    return by_sublayer(trace, taps, [vector_lengths(trace[tap].values) for tap in taps])


def tensor_of(trace: Trace, tap: str, like: Tensor) -> Tensor:
    """What was recorded of a tap as a batch of one, as a model with such weights takes it."""
    return torch.from_numpy(np.ascontiguousarray(trace[tap].values))[None].to(like)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One logit: of which output, by its number and as people read it, at which position (None: of the whole input)."""

    id: int
    token: str
    position: int | None
    logit: float

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position}"
        return f"logit of '{one_line(self.token)}'{where}: {self.logit:.4f}"


def recorded_logits(trace: Trace) -> Values:
    """The logits (T, V), or (N,) where one thing is said of the whole input; refuse a model without any."""
    if "logits" not in trace:
        raise UsageError("This model has no logits: it says nothing that could be asked about.", "Use one with a head.")
    return trace["logits"].values


def find_logit(trace: Trace, token: str | int = "", position: int = -1) -> Asked:
    """The logit of a token (as written, or its id) at a position, counted from 0.

    Without a token, of what is written there, or else of the likeliest. Position -1 is that of the last token that was
    written; where nothing is written, the last.
    """
    logits, reading = recorded_logits(trace), trace.reading
    place: int | None = None
    if logits.ndim == 1:
        if position not in (-1, 0):
            raise UsageError("This model says one thing of the whole input.", "Leave the position out.")
        own = logits
    else:
        place = (len(reading.writes) or len(logits)) - 1 if position == -1 else position
        if not 0 <= place < len(logits):
            raise UsageError(f"There are the positions 0 to {len(logits) - 1}, and no {place}.", "They count from 0.")
        own = logits[place]
    if isinstance(token, str):
        written = reading.writes[place] if place is not None and place < len(reading.writes) else int(own.argmax())
        id = _find_token(trace, token, own) if token else written
    else:
        id = token
    if not 0 <= id < len(own):
        raise UsageError(f"There is no output {id}: they are 0 to {len(own) - 1}.")
    return Asked(id=id, token=reading.outputs(id), position=place, logit=float(own[id]))


def _find_token(trace: Trace, token: str, logits: Values) -> int:
    """The number of an output by its text: as it is written, or else without white space; of several, the likeliest."""
    order = [int(number) for number in np.argsort(-logits)]
    labels = [trace.reading.outputs(number) for number in order]
    for wanted, known in ((token, labels), (token.strip(), [label.strip() for label in labels])):
        if wanted in known:
            return order[known.index(wanted)]
    raise UsageError(
        f"'{token}' is not one token of this model.",
        did_you_mean(token, labels[:_N_NEAR], otherwise="Give one token as the model writes it, or its id."),
    )


def one_line(token: str) -> str:
    """A token as a terminal shows it in one line: without white space around it, and that made visible if it is all."""
    text = token.strip() or token.replace(" ", "␣")
    return "".join(character if character.isprintable() else "·" for character in text.replace("\n", "↵"))
