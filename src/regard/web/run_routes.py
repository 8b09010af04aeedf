"""The routes about whole runs: what is open, probe examples and their events, importance, tokens, neighbours, positions."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from regard.inspection.neighbours import nearest_neighbours
from regard.inspection.probe_folder import recorded_steps
from regard.inspection.probe_timeline import read_probes
from regard.runs.disk import as_json
from regard.runs.folder import RunFolder
from regard.web.answers import JsonAnswer, PackedAnswer
from regard.web.position_bundle import position_bundle
from regard.web.run_inputs import tokenizer_of
from regard.web.session import Session
from regard.web.trace_request import MOST_TEXT, Name

EVERY = 1.0  # seconds between two looks into a folder
N_QUIET = 15  # looks after which a sign of life is sent
RunName = Annotated[str, Query(max_length=500)]


class ImportanceRequest(BaseModel):
    """A measurement of all heads of a run."""

    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    examples: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    metric: Literal["loss", "score"] = "loss"


def run_routes(session: Session) -> APIRouter:
    """All routes about runs."""
    routes = APIRouter(prefix="/api", default_response_class=JsonAnswer)

    @routes.get("/session")
    def the_session() -> JsonAnswer:
        return JsonAnswer(session.facts())

    @routes.get("/probes")
    def probes(run: RunName) -> JsonAnswer:
        return JsonAnswer(read_probes(session.opened(run).folder).to_json())

    @routes.get("/events")
    async def events(run: RunName) -> StreamingResponse:
        folder = session.opened(run).folder
        return StreamingResponse(probe_events(session, folder), media_type="text/event-stream")

    @routes.post("/importance")
    def start_importance(request: ImportanceRequest) -> JsonAnswer:
        job = session.measure(request.run, n_examples=request.examples, metric=request.metric)
        return JsonAnswer(job.facts(), status_code=202)

    @routes.get("/importance")
    def importance(run: RunName) -> JsonAnswer:
        return JsonAnswer(session.importance(run))

    @routes.get("/tokens")
    def tokens(run: RunName, text: Annotated[str, Query(max_length=MOST_TEXT)]) -> JsonAnswer:
        return JsonAnswer(session.work(lambda: token_facts(session.opened(run).run(), text)))

    @routes.get("/neighbours")
    def neighbours(
        run: RunName,
        token: Annotated[str, Query(max_length=200)] = "",
        id: Annotated[int, Query(ge=0)] | None = None,
        n: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> JsonAnswer:
        def find() -> Any:
            own = session.opened(run).run()
            return nearest_neighbours(own.model, tokenizer_of(own), token if id is None else id, n)

        found = session.work(find)
        return JsonAnswer({"token": token, "id": id, "neighbours": [one.to_json() for one in found]})

    @routes.get("/positions")
    def positions(
        kind: Annotated[str, Query(max_length=40)] = "",
        run: RunName = "",
        n: Annotated[int, Query(ge=1, le=1024)] = 100,
        d: Annotated[int, Query(ge=2, le=1024)] = 64,
        base: Annotated[float, Query(gt=1, le=1e9)] = 10000.0,
    ) -> PackedAnswer:
        def find() -> Any:
            own = session.opened(run).run() if run else None
            return position_bundle(own, kind, length=n, width=d, base=base)

        return PackedAnswer(*session.work(find))

    return routes


def token_facts(run: Any, text: str) -> dict[str, Any]:
    """The tokens of a text, and how byte-pair encoding made those of its last word."""
    tokenizer = tokenizer_of(run)
    found = [
        {"id": one.id, "text": one.text, "piece": tokenizer.piece_text(one.id), "span": [one.start, one.end]}
        for one in tokenizer.pieces(text)
    ]
    return {"kind": tokenizer.kind, "n_tokens": tokenizer.n_tokens, "tokens": found, "merges": tokenizer.merges(text)}


async def probe_events(session: Session, folder: RunFolder) -> AsyncIterator[bytes]:
    """Server-sent events: which steps are recorded, at first and whenever that changes, until the client or server ends."""
    known: list[int] | None = None
    n_quiet = 0
    while not session.closed.is_set():
        try:
            steps = await run_in_threadpool(lambda: list(recorded_steps(folder)))
        except OSError:
            steps = known or []
        if steps != known:
            known, n_quiet = steps, 0
            yield b"event: probes\ndata: " + as_json({"steps": steps}) + b"\n\n"
        elif (n_quiet := n_quiet + 1) >= N_QUIET:
            n_quiet = 0
            yield b": nothing new\n\n"
        await asyncio.sleep(EVERY)
