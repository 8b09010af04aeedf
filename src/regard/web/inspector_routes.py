"""The routes of the inspector about one trace: each asks the session for it, and the inspector for its numbers."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from regard.errors import UsageError, did_you_mean
from regard.inspection.trace import Trace
from regard.web.answers import JsonAnswer, PackedAnswer, refused
from regard.web.session import Session
from regard.web.trace_bundle import page_weights, row_bundle
from regard.web.trace_parts import (
    difference_bundle,
    embedding_bundle,
    gradient_facts,
    map_bundle,
    rollout_bundle,
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

    def asked(id: str, of: Callable[[Trace], Any]) -> Any:
        """Something of a kept trace, computed where models run."""
        kept = session.kept(id)
        return session.work(lambda: of(kept.trace))

    def or_refused(id: str, of: Callable[[Trace], Any]) -> JsonAnswer:
        """The same as JSON; where the model has no such thing, why."""
        trace = session.kept(id).trace
        try:
            return JsonAnswer(session.work(lambda: of(trace)))
        except UsageError as error:
            return JsonAnswer(refused(error))

    @routes.post("/trace")
    def trace(request: TraceRequest) -> PackedAnswer:
        return PackedAnswer(*session.bundle(session.trace(request)))

    @routes.post("/probe")
    def probe(request: ProbeRequest) -> PackedAnswer:
        return PackedAnswer(*session.bundle(session.probe(request.run, request.step, request.probe)))

    @routes.get("/weights")
    def weights(trace: Id, attention: Path) -> PackedAnswer:
        values = asked(trace, lambda own: page_weights(own, _known(own, attention)))
        return PackedAnswer({"attention": attention}, {f"weights:{attention}": values})

    @routes.get("/row")
    def row(trace: Id, attention: Path, head: Place, query: Place) -> PackedAnswer:
        return PackedAnswer(*asked(trace, lambda own: row_bundle(own, attention, head=head, query=query)))

    @routes.get("/python")
    def python(trace: Id, attention: Path, head: Place, query: Place, key: Place) -> JsonAnswer:
        cell = asked(trace, lambda own: own.cell(attention, head=head, query=query, key=key))
        return JsonAnswer({"program": cell.python()})

    @routes.get("/lens")
    def lens(trace: Id, top: Annotated[int, Query(ge=1, le=50)] = 5) -> JsonAnswer:
        return or_refused(trace, lambda own: own.lens(top=top).to_json())

    @routes.get("/contributions")
    def contributions(trace: Id, position: Position = -1, token: Place | None = None) -> JsonAnswer:
        wanted: str | int = "" if token is None else token
        return or_refused(trace, lambda own: own.contributions(wanted, position=position).to_json())

    @routes.get("/tree")
    def tree(trace: Id) -> JsonAnswer:
        return or_refused(trace, tree_facts)

    @routes.get("/checks")
    def checks(trace: Id) -> JsonAnswer:
        return or_refused(trace, lambda own: own.checks().to_json())

    @routes.get("/gradients")
    def gradients(trace: Id, position: Position = -1, token: Place | None = None) -> JsonAnswer:
        wanted: str | int = "" if token is None else token
        return or_refused(trace, lambda own: gradient_facts(own, wanted, position))

    @routes.get("/rollout")
    def rollout(trace: Id, stack: Path = "") -> PackedAnswer:
        return PackedAnswer(*asked(trace, lambda own: rollout_bundle(own, stack)))

    @routes.get("/embedding")
    def embedding(trace: Id) -> PackedAnswer:
        return PackedAnswer(*asked(trace, embedding_bundle))

    @routes.get("/map")
    def feature_map(trace: Id, tap: Path) -> PackedAnswer:
        return PackedAnswer(*asked(trace, lambda own: map_bundle(own, tap)))

    @routes.post("/difference")
    def difference(request: DifferenceRequest) -> PackedAnswer:
        a, b = (session.kept(id).trace for id in (request.a, request.b))
        return PackedAnswer(*session.work(lambda: difference_bundle(a, b)))

    return routes


def _known(trace: Trace, path: str) -> str:
    """A path that is one of the trace's attentions; refuse any other."""
    if path not in trace.attentions():
        raise UsageError(f"There is no attention '{path}' in this trace.", did_you_mean(path, trace.attentions()))
    return path
