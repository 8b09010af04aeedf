"""The table of tasks: which commands and options are for which task, known without torch."""

import subprocess
import sys

import pytest

from regard.errors import UsageError
from regard.tasks.denoising.fill_mask import BLANK, has_blank
from regard.tasks.spec import TASKS, find_spec, wrong_kind


def test_a_wrong_name_gets_the_near_one() -> None:
    with pytest.raises(UsageError) as raised:
        find_spec("translat")
    assert (raised.value.problem, raised.value.remedy) == ("There is no task 'translat'.", "Did you mean translate?")


@pytest.mark.parametrize("task", TASKS)
def test_a_run_serves_its_own_verb_and_whatever_takes_all(task: str) -> None:
    spec = TASKS[task]
    assert [verb for verb in ("translate", "generate", "predict") if spec.serves(verb)] == [spec.verb]
    assert spec.serves("evaluate")
    assert spec.serves("embed") == (spec.reads not in ("images", "captions"))


@pytest.mark.parametrize("task", TASKS)
def test_decoding_is_for_what_generates(task: str) -> None:
    spec = TASKS[task]
    assert spec.takes_option(spec.verb, "beam") == spec.generates
    assert spec.takes_option("evaluate", "beam") == ("metrics" in spec.options.get("evaluate", ()))
    assert spec.takes_option(spec.verb, "seed") == spec.generates


def test_an_option_that_no_task_claims_is_for_all() -> None:
    assert all(spec.takes_option("predict", "output") for spec in TASKS.values())
    assert {spec.name for spec in TASKS.values() if spec.takes_option("evaluate", "blocks")} == {"image"}


def test_columns_are_those_that_the_task_reads() -> None:
    assert TASKS["classify"].takes_option("evaluate", "text_b")
    assert not TASKS["tag"].takes_option("evaluate", "text_b")
    assert not TASKS["classify"].takes_option("predict", "max_length"), "that of [data] is no option"


def test_a_run_of_another_kind_is_told_with_its_article() -> None:
    assert str(wrong_kind("runs/x", TASKS["image"], "a Translator")) == (
        "runs/x is an ImageClassifier, not a Translator: it was trained for the task 'image'.\n"
        "Use it with: regard predict runs/x"
    )


def test_what_fills_in_blanks_calls_them_the_same() -> None:
    blanks = {spec.name: spec.blank for spec in TASKS.values() if spec.blank}
    assert blanks == {"mask": BLANK, "denoise": BLANK}
    assert all(has_blank(TASKS[name].example) for name in blanks)


def test_the_table_loads_nothing_heavy() -> None:
    program = "import sys, regard.tasks.spec; print(*({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"
