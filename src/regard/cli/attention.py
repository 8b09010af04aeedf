"""`--picture`: the attention of a run to one text, drawn beside what it says of that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.cli.outputs import refuse_picture
from regard.cli.terminal import tell
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.options import Options
    from regard.tasks.results import Result


def check_attention_picture(picture: str, texts: Sequence[str]) -> None:
    """Refuse a picture of an unknown format, and of anything but one text of the command line."""
    refuse_picture(picture)
    if len(texts) != 1 or not texts[0].strip():
        given = f"{len(texts)} are" if len(texts) > 1 else "none is"
        raise UsageError(
            f"--picture shows the attention to one text, and {given} given.", "Give one on the command line."
        )


def draw_attention(run: Any, text: str, result: "Result", options: "Options", picture: str) -> None:
    """Draw how a run attended to a text of which it said this."""
    from regard.inspection.attention_map import text_attention_picture
    from regard.inspection.render import save
    from regard.tasks.attention import attention_of

    weights = attention_of(run.model, run.task.reading(run.model, text, result, options))
    tell(f"drawn: {save(text_attention_picture(weights, title=text), picture)}")
