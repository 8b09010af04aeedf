"""`regard demo`: the whole road on the built-in corpus, offline: train, score, translate, draw, look inside, what next."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.options import check_option
from regard.cli.terminal import Stages, Waiting, busy, print_facts, print_lines, print_table, results, shell_word, tell
from regard.config import from_tables
from regard.runs.folder import RunFolder
from regard.training.summary import summarise

if TYPE_CHECKING:
    from regard.api import Translator
    from regard.config import RunConfig
    from regard.tasks.evaluation import Evaluation
    from regard.training.events import Event, Finished

SIZES = {"train": 30_000, "valid": 500, "test": 500, "long": 200}
TABLES: dict[str, Any] = {
    "task": "translate",
    # The layers of the paper: sinusoids do better on sentences longer than any in training (docs/LOG.md).
    "model": {
        "preset": "transformer-tiny",
        "norm": "layer",
        "positions": "sinusoidal",
        "feed_forward": "plain",
        "activation": "relu",
        "dropout": 0.0,
    },
    "tokenizer": {"vocab_size": 3000},
    "training": {
        "steps": 300,  # about 100 seconds on two cores; by steps and not by time, so that it ends the same everywhere
        "batch_tokens": 2560,
        "learning_rate": 0.01,
        "warmup": 0.1,
        "label_smoothing": 0.05,
        "validate_every": 100,
        "validate_samples": 100,
        "keep": 2,
    },
    # So that its page can go back in time; about a hundredth of the training time (benchmarks/probes.py).
    "inspection": {"probes": 3, "every": 25},
}
# Whose German has another order than its English.
SENTENCE = "Peter believes that the old woman gave the child a new book."
N_EXAMPLES = 3  # of each test set


def demo(
    *,
    run: Annotated[
        str, Parameter(metavar="DIR", help="folder of the run (runs/demo; the next free name beside it)")
    ] = "",
    steps: Annotated[int, Parameter(help="how many updates to train (300)")] = 0,
) -> int:
    """Train a small English-German translator on the built-in corpus, score it, use it and draw its attention.

    Nothing is downloaded. A demo that was stopped is resumed; a finished one stays, and a new folder is taken.
    """
    check_option("training.steps", steps)
    folder = choose_folder(Path(run or "runs/demo"))
    if not is_demo(folder):
        RunFolder.create(folder)  # a folder of something else is refused before anything is written into it
    with busy("writing the built-in corpus"):
        write_corpus(folder / "corpus")
    finished = train(folder, steps)
    if finished.signal:
        tell("Resume it with:")
        tell(f"  regard demo --run {shell_word(folder)}", style="bold")
        return 128 + finished.signal
    from regard.api import Translator

    loaded = Translator.load(folder)
    score(loaded, folder / "corpus")
    picture = draw_attention(loaded, folder)
    page = write_page(folder)
    name = shell_word(folder)
    tell()
    tell(f"{picture} shows which source words the model attended to.")
    tell(f"{page} shows every number behind that, and how it was learned: open it in a browser. Next:")
    for command in (
        f'translate {name} "The old woman gives the child a book."',
        f'inspect {name} "The small dog sees a red house."',
        f"inspect {name} --page",
        f"show {name}",
        f"plot {name}",
        "train translate --train YOUR.en YOUR.de",
    ):
        tell(f"  regard {command}", style="bold")
    return 0


def choose_folder(wanted: Path) -> Path:
    """Return the first of DIR, DIR-2, DIR-3 … that is not the folder of a finished run."""
    folder, number = wanted, 1
    while RunFolder(folder).exists() and summarise(RunFolder(folder)).end:
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def is_demo(folder: Path) -> bool:
    """Tell whether a folder is a run on its own part of the built-in corpus."""
    run = RunFolder(folder)
    if not run.exists():
        return False
    return {Path(file).parent.resolve() for file in run.read_config().data.train} == {(folder / "corpus").resolve()}


def write_corpus(folder: Path) -> None:
    """Write each part of the built-in corpus as two aligned files, unless it is there."""
    from regard.demo.corpus import corpus
    from regard.runs.disk import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    for split, count in SIZES.items():
        if (folder / f"{split}.de").exists():
            continue
        pairs = corpus(split, count)
        write_atomically(folder / f"{split}.en", "".join(f"{pair.source}\n" for pair in pairs).encode())
        write_atomically(folder / f"{split}.de", "".join(f"{pair.target}\n" for pair in pairs).encode())


def train(folder: Path, steps: int = 0) -> "Finished":
    """Train the run, or go on with it; `steps` moves its end."""
    from regard.cli.training_view import PeopleView, follow
    from regard.runtime import keep_freed_memory
    from regard.training import run as training

    keep_freed_memory()

    def start(stages: Stages) -> "Iterator[Event]":
        if RunFolder(folder).exists():
            return training.resume(folder, settings={"training.steps": steps} if steps else None, progress=stages)
        return training.train(settings(folder / "corpus", steps), folder, progress=stages)

    return follow(start, [PeopleView(advise=False)])


def settings(corpus: Path, steps: int) -> "RunConfig":
    """The settings of the demo's run."""
    data = {name: [str(corpus / f"{name}.en"), str(corpus / f"{name}.de")] for name in ("train", "valid")}
    training = {**TABLES["training"], **({"steps": steps} if steps else {})}
    return from_tables({**TABLES, "data": data, "training": training}, origin="demo")


def score(run: "Translator", corpus: Path) -> None:
    """Score the run on sentences it has not seen and on longer ones, beside a dictionary; show some outputs."""
    from regard.demo.corpus import dictionary_baseline
    from regard.evaluation.generated_text import score_translations

    rows, examples = [], []
    for split, label in (("test", "unseen sentences"), ("long", "longer than any in training")):
        files = [str(corpus / f"{split}.en"), str(corpus / f"{split}.de")]
        found = evaluate(run, files, SIZES[split])
        assert found.generated is not None
        sources, [references], outputs = found.generated.sources, found.generated.references, found.generated.outputs
        word_for_word = [dictionary_baseline(source) for source in sources]
        [baseline] = score_translations(word_for_word, references, metrics=("bleu",))
        values = (found["bleu"], found["chrf"], baseline.value)
        rows.append([label, f"{found.count:,}", *(f"{value:.1f}" for value in values)])
        examples += list(zip(sources, references, outputs, strict=True))[:N_EXAMPLES]
    print_table(["test set", "sentences", "BLEU", "chrF", "BLEU of a dictionary, word for word"], rows)
    for example in examples:
        print_lines([""])
        print_facts(list(zip(("source", "expected", "output"), example, strict=True)), results())


def evaluate(run: "Translator", files: list[str], n_sentences: int) -> "Evaluation":
    """Score the run on one test set, whose size is known."""
    with Waiting("translating", unit="sentences", total=n_sentences) as waiting:
        return run.evaluate(files, progress=lambda what, done: waiting(done))


def write_page(folder: Path) -> Path:
    """Write the page of the same sentence as one file."""
    from regard.web.session import Session
    from regard.web.single_file import write_single_page

    session, page = Session([str(folder)]), folder / "page.html"
    try:
        with busy("writing its page"):
            write_single_page(session, str(folder), SENTENCE, page)
    finally:
        session.close()
    return page


def draw_attention(run: "Translator", folder: Path) -> Path:
    """Draw the cross-attention of a sentence."""
    from regard.inspection.attention_map import text_attention_picture
    from regard.inspection.render import save
    from regard.tasks.attention import attention_of
    from regard.tasks.translation.translator import TranslationOptions

    found = run.translate(SENTENCE)
    weights = attention_of(run.model, run.task.reading(run.model, SENTENCE, found, TranslationOptions()))
    return save(text_attention_picture(weights, title=SENTENCE), folder / "attention.png")
