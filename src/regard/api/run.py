"""A trained run, ready for use: what all kinds of runs share, and how one is loaded.

`load` returns the kind that the run's task is (`kinds.py`): a `Translator`, a `Classifier`, … with the methods it has.
"""

import dataclasses
import html
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import torch
from torch import nn

from regard import runtime
from regard.api.engine import Chosen, can_embed, choose_engine
from regard.api.engine_wish import EngineWish
from regard.api.network_watch import NetworkWatch
from regard.config import RunConfig
from regard.decoding.engine.encoding_engine import EncodingEngine
from regard.decoding.engine.search_engine import SearchEngine
from regard.errors import UsageError
from regard.evaluation.baselines.baseline import Baseline
from regard.evaluation.baselines.verdict import judge
from regard.models.presets import rebuild_model, refuse_other_sizes, shapes_of, weight_shapes
from regard.parts.taps import anybody_listens
from regard.runs import checkpoints, selection
from regard.runs.checkpoints import Checkpoint
from regard.runs.folder import Reference, RunFolder
from regard.tasks import find_task
from regard.tasks.baselines import RunBaselines, advice
from regard.tasks.evaluation import Evaluation
from regard.tasks.options import GenerationOptions, Options, make_options
from regard.tasks.results import Result, Results
from regard.tasks.spec import TaskSpec, wrong_kind
from regard.tasks.task import UsableTask

if TYPE_CHECKING:
    from regard.inspection.trace import Trace

TaskType = TypeVar("TaskType", bound=UsableTask[Any])
Files = str | Path | Sequence[str | Path]


class Run(Generic[TaskType]):
    """A trained model with its vocabulary and its task.

    shared: whether somebody else holds the network, too, and may change it
    """

    def __init__(
        self,
        reference: Reference,
        task: TaskType,
        model: nn.Module,
        checkpoint: Checkpoint,
        notes: Sequence[str] = (),
        *,
        engine: EngineWish | None = None,
        shared: bool = True,
    ) -> None:
        self.reference = reference
        self.task = task
        self._network = model
        self._watch = NetworkWatch(model) if shared else None
        self.checkpoint = checkpoint
        self.notes = tuple(notes)  # such as which damaged checkpoints were passed over
        self.engine_wish = engine or EngineWish()

    @classmethod
    def load(cls, run: str | Path, **settings: Any) -> Self:
        """Load a run of this kind; as `regard.load`, but a type checker knows what comes, and any other run is refused."""
        loaded = load(run, **settings)
        if not isinstance(loaded, cls):
            raise wrong_kind(run, loaded.spec, f"a {cls.__name__}")
        return loaded

    @property
    def model(self) -> nn.Module:
        """The network. Who asks for it may change it: from then on it is watched, as no other engine knows of changes."""
        if self._watch is None:
            self._watch = NetworkWatch(self._network)
        return self._network

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.task.config

    @property
    def spec(self) -> TaskSpec:
        """What is to be known of the task."""
        return self.task.spec

    @property
    def n_parameters(self) -> int:
        """How many numbers the model has learned; tied ones count once."""
        return sum(parameter.numel() for parameter in self._network.parameters())

    def options(self, settings: Mapping[str, Any]) -> Options:
        """The options of the task from settings by name, in place of the run's own; a wrong name gets the near one."""
        return make_options(self.task.options, self.config, settings)

    @cached_property
    def engine(self) -> Chosen:
        """What searches for outputs or embeds texts: another engine, or our own; opened, perhaps converted, on first use."""
        folder = RunFolder(self.reference.path).engines
        return choose_engine(folder, self.task, self._network, self.checkpoint, self.engine_wish)

    def with_engine(self, options: Options) -> Options:
        """The options with the run's engine, for tasks that generate."""
        if not isinstance(options, GenerationOptions):
            if self.engine_wish.name == "ctranslate2":
                raise UsageError(
                    f"{self.reference} was trained for the task '{self.spec.name}', whose predictions CTranslate2 does"
                    " not compute.",
                    "Leave --engine out.",
                )
            return options
        if options.engine is not None or self._needs_the_network():
            return options
        return dataclasses.replace(options, engine=self.engine.engine)

    def encoder(self) -> EncodingEngine | None:
        """What computes the states of texts in place of the network; None where that has to."""
        if not can_embed(self._network) or self._needs_the_network():
            return None
        engine = self.engine.engine
        assert engine is None or isinstance(engine, EncodingEngine)
        return engine

    def _needs_the_network(self) -> bool:
        """Whether something is changed in the network, or listened to inside it, which no other engine shows."""
        return anybody_listens() or (self._watch is not None and self._watch.is_changed())

    def predict_with(self, inputs: Sequence[Any], options: Options) -> Results[Result]:
        """What the task says of each input, in their order."""
        return Results(self.task.predict(self._network, inputs, self.with_engine(options)))

    def evaluate_with(self, files: Files, options: Options) -> Evaluation:
        """Score the run on a test set, and its baselines beside it unless runs are compared.

        Outputs are searched for by our own search, the reference, unless another engine was asked for by name.
        """
        if self.engine_wish.name == "ctranslate2":
            options = self.with_engine(options)
        if options.paired:
            return self._evaluated(files, options)
        baselines, notes = self._baselines()
        options = dataclasses.replace(options, baselines=baselines)
        found = self._evaluated(files, options)
        verdict = judge(found.values, found.baselines, best_by=self.config.training.best_by)
        return dataclasses.replace(found, notes=(*found.notes, *notes), advice=advice(verdict, self.config))

    def _evaluated(self, files: Files, options: Options) -> Evaluation:
        """The scores, whose signatures name the engine if it is another than our own search."""
        found = self.task.evaluate(self._network, file_names(files), options)
        engine = self._engine_of(options)
        if engine is None:
            return found
        scores = [
            dataclasses.replace(one, signature=f"{one.signature}|engine:{engine.name}") if one.metric.decoded else one
            for one in found.scores
        ]
        return dataclasses.replace(found, scores=tuple(scores))

    def _engine_of(self, options: Options) -> SearchEngine | None:
        """The engine that searches by these options; None for our own search."""
        if not isinstance(options, GenerationOptions) or options.engine is None:
            return None
        engine: SearchEngine = options.engine
        decoding, n_models = options.decoding or self.config.decoding, 1 + len(getattr(options, "ensemble", ()))
        unsupported = engine.unsupported(
            decoding, banned=bool(options.banned), n_models=n_models, log_probs=options.log_probs
        )
        return None if unsupported else engine

    def trace(self, input: Any, **settings: Any) -> "Trace":
        """Look inside: every tensor that the model shows while it reads one input and writes its output; see `Trace`."""
        from regard.inspection.trace import Subject, trace_input

        return trace_input(Subject(task=self.task, model=self.model, input=input, options=self.options(settings)))

    def export(self, to: str, out: str | Path, **settings: Any) -> tuple[str, ...]:
        """Write the run as what another program reads; as `regard.export`, of the checkpoint that is loaded."""
        from regard.api.export import export  # which loads runs

        return export(self, to, out, **settings)

    def _baselines(self) -> tuple[tuple[Baseline, ...], list[str]]:
        """What the model should beat, as it was learned before training; and why there is nothing, if so."""
        file = RunFolder(self.reference.path).baseline_file
        try:
            return RunBaselines.load(file, self.task).fitted, []
        except FileNotFoundError:
            return (), [f"No baseline stands beside the scores: the run has no {file.name}."]
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return (), [f"No baseline stands beside the scores: {file} is damaged: {reason}."]

    def _predict(self, inputs: Any, settings: Mapping[str, Any], *, is_one: bool) -> Any:
        """What the task says of the inputs: one result for one input, else a list of results."""
        found = self.predict_with([inputs] if is_one else list(inputs), self.options(settings))
        return found[0] if is_one else found

    def _facts(self) -> dict[str, str]:
        model = self.config.model.preset or type(self._network).__name__
        return {
            "run": str(self.reference),
            "task": self.spec.name,
            "model": f"{model}, {self.n_parameters:,} parameters",
            "checkpoint": self.checkpoint.path.name,
        }

    def __repr__(self) -> str:
        facts = self._facts()
        return f"{type(self).__name__}({facts['run']}: {facts['model']}, {facts['checkpoint']})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in self._facts().items())
        return f"<table>{''.join(rows)}</table>"


def load(
    run: str | Path,
    *,
    model: nn.Module | None = None,
    device: str = "auto",
    threads: int = 0,
    engine: str = "auto",
    compute_type: str = "",
    shortlist: bool = False,
    engine_workers: int = 0,
    engine_threads: int = 0,
) -> Any:
    """Load a trained run as what it is: a `Translator`, a `Classifier`, …; `Translator.load` says which is expected.

    run:           `runs/m30k`, `runs/m30k@best`, `runs/m30k@400`
    model:         the network, if the run trained one of your own
    engine:        what translates, generates, and embeds by BERT: torch (our own), ctranslate2, or auto, which takes that
                   on a CPU where it can
    compute_type:  the numbers of ctranslate2: float32, int8, …; by default as the run's setting runtime.int8 says
    shortlist:     let ctranslate2 write only what the source's tokens may become, learned from the run's training pairs
    engine_workers, engine_threads: of ctranslate2; 0 for as measured on this machine
    """
    from regard.api import kinds  # the kinds are subclasses of what stands here

    reference = Reference.parse(str(run))
    folder = RunFolder.open(reference.path)
    config, origin = folder.read_config(), str(folder.config_file)
    wish = EngineWish(
        name=engine,
        compute_type=compute_type or ("int8" if config.runtime.int8 else "float32"),
        shortlist=shortlist,
        workers=engine_workers,
        threads=engine_threads,
    )
    shared = model is not None
    shapes = weight_shapes(config, origin=origin) if model is None else shapes_of(model)

    def read(path: Path) -> tuple[Checkpoint, Mapping[str, torch.Tensor]]:
        checkpoints.require_shapes(path, shapes)  # before anything is hashed, read or built
        checkpoint = checkpoints.verify(path)
        return checkpoint, checkpoints.load_used_weights(checkpoint)

    (checkpoint, weights), notes = selection.read_selected(reference, read)
    task = find_task(config.task).load(config, folder.vocabulary)
    if model is None:
        refuse_other_sizes(config.model, task.model_fields(), vocabulary=folder.vocabulary)
    # Decoding is in full precision, whatever training was in.
    machine = runtime.prepare(dataclasses.replace(config.runtime, device=device, threads=threads, precision="fp32"))
    model = rebuild_model(config, origin=origin) if model is None else model
    model.load_state_dict(weights)
    kind: type[Run[Any]] = getattr(kinds, task.spec.run)
    model = model.to(machine.device).eval()
    return kind(reference, task, model, checkpoint, notes, engine=wish, shared=shared)


def file_names(files: Files) -> list[str]:
    """Return one file or several as a list of names."""
    return [str(file) for file in ([files] if isinstance(files, str | Path) else files)]
