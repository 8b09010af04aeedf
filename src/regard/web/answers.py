"""Answers of the server: JSON without NaN, packed messages, and errors as the two lines that people know."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from regard.errors import RegardError
from regard.runs.disk import as_json
from regard.web.packing import Arrays, pack


class JsonAnswer(Response):
    """JSON; what is no finite number becomes null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return as_json(content)


class PackedAnswer(Response):
    """Facts with arrays."""

    media_type = "application/octet-stream"

    def __init__(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().__init__(pack(facts, arrays))


def error_answer(status: int, error: str, advice: str = "") -> JsonAnswer:
    """What was wrong, and what to do."""
    return JsonAnswer({"error": error, "advice": advice}, status_code=status)


def refused(error: RegardError) -> dict[str, str]:
    """What a model does not have, as an answer: the page says why in the place of the numbers."""
    return {"refused": error.problem, "advice": error.remedy}
