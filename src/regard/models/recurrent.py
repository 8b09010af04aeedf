"""Recurrent sequence-to-sequence model (Sutskever et al. 2014), with attention to the encoder (Bahdanau et al. 2015).

    source ids ── embedding ── N × recurrent layer ── states ── keys, values
                                     │ final state                   │
    target ids ── embedding ── N × recurrent layer                   │
                                     │       └── bottom state ── attention ── context ──▸ the next step's input,
                                     │ top state                                          the layers above,
                                     └── tanh(W[state; context]) ── output ── logits      and the prediction

What differs from the Transformer: order lies in the recurrence, not in positions; a step costs the same at any length.
Without attention the final state alone goes from the encoder to the decoder: one vector per layer holds the whole source.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from regard.config import REQUIRED, option
from regard.models.model_config import ModelConfig
from regard.parts import masks
from regard.parts.dropout import Dropout
from regard.parts.embedding import TYINGS, InputEmbedding, OutputLayer, TokenEmbedding, check_tying
from regard.parts.initialisation import initialise
from regard.parts.masks import Mask
from regard.parts.recurrent import CELLS, Cell, CellState, RecurrentEncoder
from regard.parts.recurrent_state import RecurrentState
from regard.parts.scores import FUNCTIONS, SCORES, StateAttention, check_dot, function_width
from regard.parts.stack import Stack
from regard.parts.taps import tap


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(ModelConfig):
    """The sizes and choices of a recurrent encoder and decoder; the defaults are small and classical."""

    source_vocab: int = option(REQUIRED, "source vocabulary size; follows from the data", least=1)
    target_vocab: int = option(REQUIRED, "target vocabulary size; follows from the data", least=1)
    cell: str = option("gru", "recurrent cell; elman is a = tanh(W[a; x] + b)", choices=tuple(CELLS))
    n_layers: int = option(1, "layers of the encoder and of the decoder", least=1, most=1_000)
    d_model: int = option(256, "embedding size", least=1, most=65_536)
    d_state: int = option(256, "width of a hidden state, per direction", least=1, most=65_536)
    bidirectional: bool = option(True, "the encoder reads in both directions")
    attention: str = option(
        "bilinear",
        "score of a query and a key; none for a decoder that sees the final state alone",
        choices=("none", *SCORES),
    )
    query_function: str = option(
        "identity", "what a query is of the decoder's state h: h, W h + b, or σ(W h + b)", choices=FUNCTIONS
    )
    key_function: str = option(
        "identity",
        "what a key is of an encoder's state, likewise; the last two are as wide as a query",
        choices=FUNCTIONS,
    )
    value_function: str = option("identity", "what a value is of an encoder's state, likewise", choices=FUNCTIONS)
    dropout: float = option(0.1, "dropout rate", least=0, below=1)
    tied: str = option(
        "all",
        "weight tying: one matrix for source, target and output (all), for target and output (target), or none",
        choices=TYINGS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tying(self.tied, source_vocab=self.source_vocab, target_vocab=self.target_vocab)
        if self.attention == "dot":
            check_dot(self.d_state, function_width(self.key_function, self.d_memory, self.d_state))

    @property
    def d_memory(self) -> int:
        """The width of what the encoder hands on: both directions are joined."""
        return self.d_state * (2 if self.bidirectional else 1)


class Bridge(nn.Module):
    """From what an encoder ends with to the decoder's first states: projected to their width, each tensor by its own."""

    def __init__(self, cell: str, d_final: int, d_state: int, *, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Linear(d_final, d_state) for _ in range(CELLS[cell].n_tensors)) for _ in range(n_layers)
        )

    def stacks(self) -> tuple[Stack, ...]:
        """One layer for each of the decoder's, for layer-wise learning rates."""
        return (Stack(self.layers),)

    def forward(self, final: tuple[CellState, ...]) -> tuple[CellState, ...]:
        """For each layer, (B, d_final) to (B, D)."""
        return tuple(
            tuple(project(tensor) for project, tensor in zip(projections, state, strict=True))
            for projections, state in zip(cast(Sequence[nn.ModuleList], self.layers), final, strict=True)
        )


class RecurrentLayers(nn.Module):
    """Recurrent layers, of which the bottom one asks the memory; `forward` while training, `step` while decoding."""

    def __init__(
        self, cell: str, d_model: int, d_state: int, *, attention: StateAttention | None, n_layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.attention = attention
        d_context = 0 if attention is None else attention.d_context
        self.layers = nn.ModuleList(
            CELLS[cell](d_model if number == 0 else d_state + d_context, d_state) for number in range(n_layers)
        )
        # The bottom input is [token; context]. Its matrix is kept in two, since the tokens are known all at once.
        n_rows = len(CELLS[cell].gates) * d_state
        self.context_input = nn.Linear(d_context, n_rows, bias=False) if d_context else None
        self.prediction = nn.Linear(d_state + d_context, d_model)
        self.dropout = Dropout(dropout)

    def start(self, states: Tensor, first: tuple[CellState, ...], mask: Mask) -> RecurrentState:
        """The encoder's states (B, S, D) and the first ones of each layer, to the state before the first step."""
        if self.attention is None:
            return RecurrentState(n_sentences=len(states), layers=first)
        memory = self.attention.memory(states)
        context = memory[1].new_zeros(len(states), self.attention.d_context)
        return RecurrentState(n_sentences=len(states), layers=first, context=context, memory=memory, memory_mask=mask)

    def forward(self, x: Tensor, start: RecurrentState) -> Tensor:
        """Whole target sequences, embedded (B, T, D), to what the output layer reads (B, T, D)."""
        bottom, *above = self.cells
        contexts = None
        if self.attention is None:
            x = bottom.read(x, start.layers[0])
        else:
            # Only the bottom layer waits for the context, step by step: the layers above follow when all are known.
            projected = bottom.project(x)
            state, steps = start, []
            for position in range(x.shape[1]):
                state = self._ask(projected[:, position], state)
                steps.append((state.layers[0][0], cast(Tensor, state.context)))
            x, contexts = (torch.stack(column, dim=1) for column in zip(*steps, strict=True))
            x = tap(bottom, "states", x)
        for cell, first in zip(above, start.layers[1:], strict=True):
            x = cell.read(_joined(self.dropout(x), contexts), first)
        return self.predict(x, contexts)

    def step(self, projected: Tensor, state: RecurrentState) -> RecurrentState:
        """One more position: the token's projection (R, gates·D) to the state after it."""
        after = self._ask(projected, state)
        layers = [after.layers[0]]
        for cell, before in zip(self.cells[1:], state.layers[1:], strict=True):
            x = _joined(self.dropout(layers[-1][0]), after.context)
            layers.append(cell.step(cell.project(x), before))
        return replace(after, layers=tuple(layers))

    def predict(self, x: Tensor, context: Tensor | None) -> Tensor:
        """The top layer's states (…, D) and the contexts to what the output layer reads: tanh(W[h; c])."""
        predicted: Tensor = self.dropout(self.prediction(_joined(x, context)).tanh())
        return tap(self, "output", predicted)

    @property
    def cells(self) -> list[Cell]:
        """The layers, of which nn.ModuleList says only that they are modules."""
        return cast(list[Cell], list(self.layers))

    def _ask(self, projected: Tensor, state: RecurrentState) -> RecurrentState:
        """One step of the bottom layer: it reads the token and the last context, and its new state asks for the next."""
        bottom = self.cells[0]
        if self.attention is None or self.context_input is None or state.memory is None:
            return replace(state, layers=(bottom.step(projected, state.layers[0]), *state.layers[1:]))
        after = bottom.step(projected + self.context_input(state.context), state.layers[0])
        # The hypotheses of a sentence ask the same memory: they are so many queries to one set of keys.
        queries = after[0].unflatten(0, (state.n_sentences, -1))
        context = self.attention(queries, *state.memory, state.memory_mask).flatten(0, 1)
        return replace(state, layers=(after, *state.layers[1:]), context=context)


class RecurrentDecoder(nn.Module):
    """What writes a target, whatever state it starts from: the model without its encoder."""

    target_embedding: InputEmbedding
    decoder: RecurrentLayers
    output: OutputLayer

    @property
    def max_length(self) -> int | None:
        """The longest sequence: any."""
        return None

    @property
    def alignment_tap(self) -> str | None:
        """The tap that shows which part of the memory a target token was read from; None without attention."""
        return None if self.decoder.attention is None else "decoder.attention.weights"

    def stacks(self) -> tuple[Stack, ...]:
        """The layers that a target token passes, for layer-wise learning rates."""
        return (Stack(self.decoder.layers, below=(self.target_embedding,)),)

    def embedded(self, target: Tensor) -> Tensor:
        """target ids (B, T) to (B, T, D), which the decoder reads."""
        return _embedded(self.target_embedding, target)

    def read(self, state: RecurrentState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, RecurrentState]:
        """ids (R, T), of which `counts` (R,) are real, to what the output layer reads (R, D) at each row's last real one."""
        projected = self.decoder.cells[0].project(self.embedded(ids))
        for position in range(ids.shape[1]):
            after = self.decoder.step(projected[:, position], state)
            # A row that has read all its ids stays where it is.
            state = after if counts is None else after.where(position < counts, state)
        return self.decoder.predict(state.layers[-1][0], state.context), state


class Recurrent(RecurrentDecoder):
    """Encoder and decoder; `forward` while training, `start` and `step` while decoding."""

    def __init__(self, config: RecurrentConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        source_tokens = TokenEmbedding(config.source_vocab, config.d_model)
        target_tokens = source_tokens if config.tied == "all" else TokenEmbedding(config.target_vocab, config.d_model)
        self.source_embedding = _input_embedding(config, source_tokens)
        self.encoder = RecurrentEncoder(
            config.cell,
            config.d_model,
            config.d_state,
            n_layers=config.n_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )
        # In one direction, the encoder's states have the decoder's width, and are handed over as they are.
        self.bridge = (
            Bridge(config.cell, config.d_memory, config.d_state, n_layers=config.n_layers)
            if config.bidirectional
            else nn.Identity()
        )
        self.target_embedding = _input_embedding(config, target_tokens)
        self.decoder = RecurrentLayers(
            config.cell,
            config.d_model,
            config.d_state,
            attention=None if config.attention == "none" else _attention(config),
            n_layers=config.n_layers,
            dropout=config.dropout,
        )
        tied_to = None if config.tied == "none" else target_tokens
        self.output = OutputLayer(config.target_vocab, config.d_model, tied_to=tied_to)
        initialise(self, seed)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths; target ids (B, T) from the start token; both padded; to logits (B, T, V)."""
        return tap(self, "logits", self.output(self.states(source, source_lengths, target)))

    def states(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """What the output layer reads, (B, T, D). Padding stands behind the target, where no real position sees it."""
        states: Tensor = self.decoder(self.embedded(target), self.start((source, source_lengths)))
        return states

    def stacks(self) -> tuple[Stack, ...]:
        """The layers of both sides, for layer-wise learning rates."""
        return (Stack(self.encoder.layers, below=(self.source_embedding,)), *super().stacks())

    def encode(self, source: Tensor, source_lengths: Tensor) -> Tensor:
        """source ids (B, S) of (B,) lengths to the encoder's states (B, S, D), those of both directions side by side."""
        states: Tensor = self.encoder(_embedded(self.source_embedding, source), source_lengths)[0]
        return states

    def start(self, inputs: tuple[Tensor, Tensor]) -> RecurrentState:
        """Encode (source ids, lengths), and compute once what every step asks of the encoder's states."""
        source, source_lengths = inputs
        states, final = self.encoder(_embedded(self.source_embedding, source), source_lengths)
        return self.decoder.start(states, self.bridge(final), masks.padding(source_lengths, source.shape[1]))

    def step(self, state: RecurrentState, ids: Tensor, counts: Tensor | None = None) -> tuple[Tensor, RecurrentState]:
        """ids (R, T), of which `counts` (R,) are real, to the logits (R, V) after each row's last real one."""
        predicted, after = self.read(state, ids, counts)
        return tap(self, "logits", self.output(predicted)), after


def _attention(config: RecurrentConfig) -> StateAttention:
    return StateAttention(
        config.attention,
        query=config.query_function,
        key=config.key_function,
        value=config.value_function,
        d_query=config.d_state,
        d_memory=config.d_memory,
    )


def _joined(x: Tensor, context: Tensor | None) -> Tensor:
    return x if context is None else torch.cat([x, context], dim=-1)


def _input_embedding(config: RecurrentConfig, tokens: TokenEmbedding) -> InputEmbedding:
    return InputEmbedding(tokens, None, concatenate=False, dropout=config.dropout)


def _embedded(embedding: InputEmbedding, ids: Tensor) -> Tensor:
    """(B, T) to (B, T, D); the positions are those of a model that has any."""
    embedded: Tensor = embedding(ids, torch.arange(ids.shape[1], device=ids.device))
    return embedded
