"""What the tests of the server share: a run with probe examples, and a client that speaks to the application."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import numpy as np
import pytest

from regard.web.app import make_app
from regard.web.packing import unpack
from regard.web.session import Session

PORT = 4242
HOST = f"127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Client:
    """Asks the application as a browser would, without a socket."""

    app: Any

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, path, **given)

        return anyio.run(send)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.ask("GET", path, params=query)

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.ask("POST", path, json=body)

    def json(self, path: str, **query: Any) -> Any:
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def packed(self, path: str, **query: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/octet-stream"
        return unpack(answer.content)

    def trace(self, run: object, input: Any, **wishes: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        answer = self.post("/api/trace", {"run": str(run), "input": input, **wishes})
        assert answer.status_code == 200, answer.text
        return unpack(answer.content)


@pytest.fixture
def own_watched(watched: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed or damaged."""
    return Path(shutil.copytree(watched, tmp_path / "own"))


@pytest.fixture
def open_page() -> Iterator[Callable[..., Client]]:
    """Open runs as a session, and return a client: open_page(run, other, input="…")."""
    sessions: list[Session] = []

    def open_runs(*runs: object, **settings: Any) -> Client:
        sessions.append(Session([str(run) for run in runs], threads=1, **settings))
        return Client(make_app(sessions[-1], port=lambda: PORT))

    yield open_runs
    for session in sessions:
        session.close()


@pytest.fixture(scope="module")
def page(watched: Path) -> Iterator[Client]:
    """A page of the watched run, for questions that change nothing."""
    session = Session([str(watched)], threads=1)
    yield Client(make_app(session, port=lambda: PORT))
    session.close()
