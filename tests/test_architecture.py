"""The house: who may import whom, and the rules that hold in every file, read from the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import regard

SOURCE = Path(__file__).parent.parent / "src" / "regard"

# A room is a folder or a file directly under the package. Every room but `parts` may import these.
GROUND = {"errors", "config", "regular_files", "runtime", "tasks.spec"}
# What each room may import beside the ground and itself; a dotted name allows only that module of the room.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "regular_files": set(),
    "config": {"errors", "regular_files", "tasks.spec"},
    "runtime": {"errors", "config"},
    "parts": {"errors"},
    "data": GROUND,
    "demo": GROUND,
    "runs": GROUND | {"evaluation.metrics"},
    "evaluation": GROUND,
    "decoding": GROUND | {"parts.decoder_state"},
    "models": GROUND | {"parts"},
    "tasks": GROUND | {"models", "data", "decoding", "evaluation", "runs", "parts.losses", "parts.taps"},
    # Of a run's folder it reads and writes `traces/`: the time machine.
    "inspection": GROUND | {"tasks", "models", "decoding", "parts", "evaluation", "runs"},
    # The trainer records probe examples; what is computed from traces afterwards is none of its business.
    "training": GROUND
    | {"tasks", "data", "evaluation", "runs", "models", "parts", "inspection.trace", "inspection.probes"},
    "exchange": GROUND | {"models", "parts", "data.text", "runs"},
    "api": GROUND
    | {
        "tasks",
        "training",
        "evaluation",
        "inspection",
        "exchange",
        "runs",
        "models",
        "data.text",
        "decoding.engine",
        "parts.taps",
    },
    # Of a run's folder it lists what there is: checkpoints, probe examples. JSON without NaN is written by `runs.disk`.
    "web": GROUND | {"api", "inspection", "decoding", "runs"},
    "__init__": {"api", "errors"},
    "__main__": {"cli"},
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "__import__", "torch.load", "torch.save"}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}

FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
LIBRARY = [path for path in FILES if path.parts[0] not in ("cli", "__main__.py")]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((SOURCE / path).read_text(encoding="utf-8"), filename=str(path))


def room(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imported_modules(module: ast.Module) -> Iterator[str]:
    """Yield the dotted name of everything a file imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(module: ast.Module) -> set[str]:
    """Return what a file imports of the package, without the package's name: `parts.taps.tap`, `config.RunConfig`."""
    ours = (name.split(".", 1)[1] for name in imported_modules(module) if name.startswith("regard."))
    return {name for name in ours if not name.startswith("__")}


def is_allowed(name: str, own: str) -> bool:
    if own == "cli" or name.split(".")[0] == own:
        return True
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[own])


def called(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of a file with what is called: `print`, `torch.load`, `model.eval`."""
    return ((ast.unparse(node.func), node) for node in ast.walk(tree(path)) if isinstance(node, ast.Call))


# -- the checks themselves can fail -------------------------------------------------------------------------------------


def test_imports_are_found_wherever_they_stand() -> None:
    module = ast.parse(
        "import regard\nfrom regard import runtime, __version__\nimport regard.data.pipeline.corpus as c\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from regard.tasks.task import Task\n"
        "def late():\n    from regard.parts.taps import tap\n"
    )
    assert imported_rooms(module) == {"runtime", "data.pipeline.corpus", "tasks.task.Task", "parts.taps.tap"}


def test_directions_are_told_apart() -> None:
    assert is_allowed("parts.taps.tap", "tasks")
    assert not is_allowed("parts.dropout.seeded", "tasks")
    assert not is_allowed("parts.tapsandmore", "tasks")
    assert not is_allowed("config.RunConfig", "parts")
    assert is_allowed("parts.decoder_state.DecoderState", "decoding")
    assert not is_allowed("parts.attention", "decoding")
    assert is_allowed("tasks.task.Task", "cli")


# -- the direction of imports -------------------------------------------------------------------------------------------


def test_every_room_has_its_place() -> None:
    assert {room(path) for path in LIBRARY} <= set(ALLOWED)


def test_the_direction_of_imports() -> None:
    wrong = [
        f"{path} imports {name}"
        for path in FILES
        for name in sorted(imported_rooms(tree(path)))
        if not is_allowed(name, room(path))
    ]
    assert not wrong


def test_nothing_but_the_command_imports_the_command() -> None:
    assert not [path for path in LIBRARY if any(name.split(".")[0] == "cli" for name in imported_rooms(tree(path)))]


def test_no_relative_imports() -> None:
    relative = [
        f"{path}:{node.lineno}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


# -- rules of the house -------------------------------------------------------------------------------------------------


def test_a_file_says_what_it_is() -> None:
    """Every file with something in it has a docstring."""
    assert not [path for path in FILES if not ast.get_docstring(tree(path))]


def test_a_file_is_named_after_its_subject() -> None:
    assert not [path for path in FILES if FORBIDDEN_NAMES & {part.removesuffix(".py") for part in path.parts}]


def test_the_library_never_prints() -> None:
    assert not [f"{path}:{node.lineno}" for path in LIBRARY for name, node in called(path) if name == "print"]


def test_nothing_from_a_file_is_ever_run() -> None:
    """No pickle under any name, no eval, no exec: a stranger's run folder can be opened."""
    modules = {path: {name.split(".")[0] for name in imported_modules(tree(path))} for path in FILES}
    assert not [path for path in FILES if modules[path] & FORBIDDEN_MODULES]
    calls = [(path, name, node) for path in FILES for name, node in called(path) if name in FORBIDDEN_CALLS]
    # Other packages pickle their weights: one file reads them, tensors only, for those who ask for it.
    weights_only = {
        node
        for path, name, node in calls
        if (str(path), name) == ("exchange/pickled_weights.py", "torch.load")
        and any(keyword.arg == "weights_only" and ast.unparse(keyword.value) == "True" for keyword in node.keywords)
    }
    assert not [f"{path}:{node.lineno}" for path, _, node in calls if node not in weights_only]
    pickled = [
        f"{path}:{node.lineno}"
        for path in FILES
        for _, node in called(path)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle"
        and ast.unparse(keyword.value) != "False"
        and ast.unparse(node.func) not in ("read_folder", "api.import_model")  # which hand on what the user said
    ]
    assert not pickled


def test_importing_the_package_is_quick() -> None:
    """`import regard` and the run file's classes load neither torch nor anything else that is large."""
    program = (
        "import sys, regard, regard.config, regard.errors\n"
        "large = {'torch', 'numpy', 'tokenizers', 'sacrebleu', 'matplotlib', 'safetensors', 'PIL', 'transformers'}\n"
        "print('loaded:', *sorted(large & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "loaded:\n"


def test_using_a_run_loads_nothing_of_training(trained: Path) -> None:
    program = (
        "import sys, regard\n"
        f"regard.load({str(trained)!r}, threads=1).translate(['a dog'])\n"
        "print('loaded:', *sorted(name for name in sys.modules if name.startswith('regard.training')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "loaded:\n"


def test_the_packages_names_exist() -> None:
    assert set(regard.__all__) <= set(dir(regard))
    for name in regard.__all__:
        assert getattr(regard, name).__module__.startswith("regard.")
    with pytest.raises(AttributeError, match=r"^module 'regard' has no attribute 'nonsense'$"):
        _ = regard.nonsense
