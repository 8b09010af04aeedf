"""The entry point: the list of commands, and how the end of one reaches the shell.

Exit codes: 0; 1 failure; 2 usage; 130 interrupted (Ctrl-C) and 143 terminated, both after saving where a run is trained.
"""

import sys
import traceback
from collections.abc import Iterable, Sequence
from keyword import iskeyword

from cyclopts import (
    App,
    Argument,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    Token,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.help import DefaultFormatter

import regard
from regard.cli.overview import OVERVIEW
from regard.cli.streams import OutputError, standard_streams
from regard.cli.terminal import tell, visible
from regard.errors import RegardError, UsageError, did_you_mean

# In the order in which people meet them: the command with its arguments, and a line for the list. Each command is the
# function of its name in the file of its name; `import`, which Python keeps for itself, is `import_model`.
COMMANDS = (
    ("demo", "Train a small translator on the built-in corpus, score it, use it. Offline."),
    ("train TASK|FILE.toml", "Train a new model on your files."),
    ("resume RUN", "Resume a run that was stopped."),
    ("translate RUN [TEXT…]", "Translate text, or standard input line by line."),
    ("generate RUN [PROMPT…]", "Generate text that continues a prompt."),
    ("predict RUN [INPUT…]", "Predict classes, tags, numbers or captions; fill in masked words."),
    ("embed RUN [TEXT…]", "Turn texts, or their words, into vectors."),
    ("evaluate RUN --data FILE…", "Score a run on a test set."),
    ("compare RUN RUN… --data FILE…", "Compare runs on a test set: scores, significance, size, throughput."),
    ("inspect RUN [INPUT]", "Look inside a run: attention maps, every number, ablation, the beam's tree."),
    ("import PATH --run RUN", "Import a model of Hugging Face's transformers, or a GGUF file, as a run."),
    ("export RUN OUT --to KIND", "Export a run to Hugging Face, CTranslate2, ONNX or Argos Translate."),
    ("average RUN --last N", "Average the weights of several checkpoints of a run."),
    ("runs [FOLDER]", "List runs and what they reached."),
    ("show RUN", "Show what a run is and what it reached."),
    ("plot RUN…", "Draw the learning curves of runs, or the gradient norms of their layers."),
    ("models [TASK]", "List the models (presets) and their numbers of parameters."),
    ("plan MODEL", "Estimate what a training run takes: parameters, memory, FLOPs, time on given devices."),
)
KINDS: dict[object, str] = {int: "a whole number", float: "a number"}
MEMORY = (
    "Lower what is asked for at once: --batch-tokens or --batch-images to train, --batch-size or --beam to use a run."
)
DEFECT = "error: This is a defect of regard. Please report it with the lines above."
DATA_COMMANDS = (("check FILE…", "Report counts, lengths, bad lines, duplicates and test-set leaks."),)


def make_app(arguments: Sequence[str] = ()) -> App:
    """Build the command line; the files of commands are loaded when they are called.

    The list of commands has a line for each. The command that `arguments` calls explains itself by its docstring.
    """
    app = App(
        name="regard",
        help="Build, train and look inside Transformers of your own.",
        version=f"regard {regard.__version__}",
        help_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=False),
        help_epilogue="Each command explains itself: regard predict --help; and each task: regard train translate --help.",
        suppress_keyboard_interrupt=False,
    )
    data = App(name="data", help="Look at data before training on it.", sort_key=len(COMMANDS), help_epilogue="")
    _add(app, "regard", COMMANDS, called=arguments, module="regard.cli.{name}")
    _add(data, "regard data", DATA_COMMANDS, called=arguments[1:], module="regard.cli.data")
    app.command(data)
    app.register_install_completion_command(help="Install completion of commands and options for your shell.")
    return app


def _add(app: App, path: str, commands: Iterable[tuple[str, str]], *, called: Sequence[str], module: str) -> None:
    for number, (usage, help) in enumerate(commands):
        name = usage.partition(" ")[0]
        function = f"{name}_model" if iskeyword(name) else name
        is_called = list(called[:1]) == [name]
        app.command(
            f"{module.format(name=function)}:{function}",
            name=name,
            help=None if is_called else help,
            usage=f"Usage: {path} {usage} [OPTIONS]",
            sort_key=number,
            help_format="markdown",  # which joins the lines of a docstring's paragraph
            help_formatter=_formatter(name, called[1:]) if is_called else None,
            help_epilogue="",
        )


def _formatter(command: str, arguments: Sequence[str]) -> DefaultFormatter | None:
    """What shows the help of a command, where that depends on its arguments."""
    if command != "train":
        return None
    from regard.cli.train_help import TrainHelp

    return TrainHelp.of(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams():
        try:
            code = run(arguments)
            sys.stdout.flush()
            return code
        except RegardError as error:
            if not getattr(error, "told", False):  # by another of several processes
                complain(error)
            return error.exit_code
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130
        except OutputError as error:
            if not error.reader_left:
                problem = f"Standard output cannot be written: {error.strerror}."
                complain(RegardError(problem, "Free some space, or send the output elsewhere."))
            return 1
        except Exception as error:
            if is_out_of_memory(error):
                complain(RegardError("There is not enough memory.", MEMORY))
                return 1
            for line in [*traceback.format_exc().splitlines(), "", DEFECT]:
                print(visible(line), file=sys.stderr)
            return 1


def run(arguments: Sequence[str]) -> int:
    """Find the command and call it; what it returns is the exit code, None stands for 0."""
    if not arguments:
        print(OVERVIEW)
        return 0
    try:
        code = make_app(arguments)(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise as_usage_error(error) from None
    return int(code or 0)


def as_usage_error(error: CycloptsError) -> UsageError:
    """Turn what the parser found into our two lines: what is wrong, and the near name or the way to the help."""
    command = " ".join(("regard", *(error.command_chain or ())))
    help = f"See: {command} --help"
    match error:
        case UnknownCommandError(app=App() as app, unused_tokens=[str(name), *_]):
            is_option = name.startswith("-")
            problem = f"{command} has no option {name}." if is_option else f"There is no command '{command} {name}'."
            names = [one for one in app if one.startswith("-") == is_option]
            return UsageError(problem, did_you_mean(name, names, otherwise=help))
        case UnknownOptionError():
            name = (error.token.keyword or error.token.value).partition("=")[0]
            names = [known for argument in error.argument_collection for known in argument.names]
            from regard.cli.options import near_option

            near = near_option(name, names, command=command.removeprefix("regard "), otherwise=help)
            return UsageError(f"{command} has no option {name}.", near)
        case MissingArgumentError(argument=Argument(name=name)):
            return UsageError(f"{name} needs a value." if error.keyword else f"{command} needs {name}.", help)
        case CoercionError(token=Token(keyword=str(name), value=value)) if error.target_type in KINDS:
            return UsageError(f"{name} must be {KINDS[error.target_type]}, not '{value}'.", help)
        case UnusedCliTokensError(unused_tokens=[str(name), *_]):
            return UsageError(f"{command} has no place for '{name}'.", help)
    return UsageError(str(error), help)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory was refused; the allocator of torch raises a plain RuntimeError."""
    is_torch = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and is_torch)


def complain(error: RegardError) -> None:
    """Show an error in its two lines."""
    tell(f"error: {error.problem}", style="bold red")
    if error.remedy:
        tell(error.remedy)
