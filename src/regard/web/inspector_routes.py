"""The routes of the inspector about one trace: each asks the session for it, and the inspector for its numbers."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from regard.errors import UsageError, did_you_mean
from regard.inspection.trace import Trace
from regard.web.answers import JsonAnswer, PackedAnswer, refused
from regard.web.row_bundle import row_bundle
from regard.web.session import Session
from regard.web.trace_bundle import Bundle, page_weights
from regard.web.trace_parts import (
    difference_bundle,
    embedding_bundle,
    gradient_facts,
    map_bundle,
    passing_bundle,
    tree_facts,
)
from regard.web.trace_request import Name, TraceRequest

Id = Annotated[str, Query(max_length=20)]
Path = Annotated[str, Query(max_length=300)]
Place = Annotated[int, Query(ge=0)]
Position = Annotated[int, Query(ge=-1)]


class ProbeRequest(BaseModel):
    """One probe example at one recorded step."""

    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    step: int
    probe: int = 0


class DifferenceRequest(BaseModel):
    """Two traces."""

    model_config = ConfigDict(extra="forbid", strict=True)
    a: Name
    b: Name


def inspector_routes(session: Session) -> APIRouter:
    """All routes about traces."""
    routes = APIRouter(prefix="/api", default_response_class=JsonAnswer)
    _add_traces(routes, session)
    _add_arrays(routes, session)
    _add_facts(routes, session)
    return routes


def _add_traces(routes: APIRouter, session: Session) -> None:
    """Whole traces: recorded, read from a probe's file, compared."""

    @routes.post("/trace")
    def trace(request: TraceRequest) -> PackedAnswer:
        return PackedAnswer(*session.bundle(session.trace(request)))

    @routes.post("/probe")
    def probe(request: ProbeRequest) -> PackedAnswer:
        return PackedAnswer(*session.bundle(session.probe(request.run, request.step, request.probe)))

    @routes.post("/difference")
    def difference(request: DifferenceRequest) -> PackedAnswer:
        a, b = (session.kept(id).trace for id in (request.a, request.b))
        return PackedAnswer(*session.work(lambda: difference_bundle(a, b)))


def _add_arrays(routes: APIRouter, session: Session) -> None:
    """Parts of a trace that are arrays."""

    def packed(id: str, of: Callable[[Trace], Bundle]) -> PackedAnswer:
        trace = session.kept(id).trace
        return PackedAnswer(*session.work(lambda: of(trace)))

    @routes.get("/weights")
    def weights(trace: Id, attention: Path) -> PackedAnswer:
        def of(own: Trace) -> Bundle:
            return {"attention": attention}, {f"weights:{attention}": page_weights(own, _known(own, attention))}

        return packed(trace, of)

    @routes.get("/row")
    def row(trace: Id, attention: Path, head: Place, query: Place) -> PackedAnswer:
        return packed(trace, lambda own: row_bundle(own, attention, head=head, query=query))

    @routes.get("/rollout")
    def rollout(trace: Id, stack: Path = "") -> PackedAnswer:
        return packed(trace, lambda own: passing_bundle(own, "rollout", stack))

    @routes.get("/flow")
    def flow(trace: Id, stack: Path = "") -> PackedAnswer:
        own = session.kept(trace).trace
        return PackedAnswer(*session.work_aside(lambda: passing_bundle(own, "flow", stack)))

    @routes.get("/embedding")
    def embedding(trace: Id) -> PackedAnswer:
        return packed(trace, embedding_bundle)

    @routes.get("/map")
    def feature_map(trace: Id, tap: Path) -> PackedAnswer:
        return packed(trace, lambda own: map_bundle(own, tap))


def _add_facts(routes: APIRouter, session: Session) -> None:
    """Parts of a trace that are JSON; where the model has no such thing, why."""

    def facts(
        id: str, of: Callable[[Trace], Any], work: Callable[[Callable[[], Any]], Any] = session.work
    ) -> JsonAnswer:
        trace = session.kept(id).trace
        try:
            return JsonAnswer(work(lambda: of(trace)))
        except UsageError as error:
            return JsonAnswer(refused(error))

    @routes.get("/python")
    def python(trace: Id, attention: Path, head: Place, query: Place, key: Place) -> JsonAnswer:
        own = session.kept(trace).trace
        cell = session.work(lambda: own.cell(attention, head=head, query=query, key=key))
        return JsonAnswer({"program": cell.python()})

    @routes.get("/lens")
    def lens(trace: Id, top: Annotated[int, Query(ge=1, le=50)] = 5) -> JsonAnswer:
        return facts(trace, lambda own: own.lens(top=top).to_json())

    @routes.get("/contributions")
    def contributions(trace: Id, position: Position = -1, token: Place | None = None) -> JsonAnswer:
        wanted: str | int = "" if token is None else token
        return facts(trace, lambda own: own.contributions(wanted, position=position).to_json())

    @routes.get("/gradients")
    def gradients(trace: Id, position: Position = -1, token: Place | None = None) -> JsonAnswer:
        wanted: str | int = "" if token is None else token
        return facts(trace, lambda own: gradient_facts(own, wanted, position))

    @routes.get("/tree")
    def tree(trace: Id) -> JsonAnswer:
        return facts(trace, tree_facts)

    @routes.get("/checks")
    def checks(trace: Id) -> JsonAnswer:
        return facts(trace, lambda own: own.checks().to_json(), session.work_aside)


def _known(trace: Trace, path: str) -> str:
    """A path that is one of the trace's attentions; refuse any other."""
    if path not in trace.attentions():
        raise UsageError(f"There is no attention '{path}' in this trace.", did_you_mean(path, trace.attentions()))
    return path
