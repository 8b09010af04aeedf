"""The routes of the inspector: each asks the session for a trace, and the inspector for its numbers."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from regard.errors import UsageError
from regard.inspection.probe_timeline import read_probes
from regard.web.answers import JsonAnswer, PackedAnswer, refused
from regard.web.session import KeptTrace, Session
from regard.web.trace_bundle import page_weights, row_bundle, trace_bundle
from regard.web.trace_request import Name, TraceRequest

Id = Annotated[str, Query(max_length=20)]
Path = Annotated[str, Query(max_length=300)]
Place = Annotated[int, Query(ge=0)]


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
    """All routes of the inspector."""
    routes = APIRouter(prefix="/api", default_response_class=JsonAnswer)

    def asked(id: str, of: Callable[[Any], Any]) -> Any:
        """Something of a kept trace, computed where models run."""
        kept = session.kept(id)
        return session.work(lambda: of(kept.trace))

    def or_refused(id: str, of: Callable[[Any], Any]) -> JsonAnswer:
        """The same as JSON; where the model has no such thing, why."""
        try:
            return JsonAnswer(asked(id, of))
        except UsageError as error:
            if session.has(id):
                return JsonAnswer(refused(error))
            raise

    @routes.get("/session")
    def the_session() -> JsonAnswer:
        return JsonAnswer(session.facts())

    @routes.post("/trace")
    def trace(request: TraceRequest) -> PackedAnswer:
        return packed_trace(session, session.trace(request))

    @routes.post("/probe")
    def probe(request: ProbeRequest) -> PackedAnswer:
        return packed_trace(session, session.probe(request.run, request.step, request.probe))

    @routes.get("/weights")
    def weights(trace: Id, attention: Path) -> PackedAnswer:
        values = asked(trace, lambda own: page_weights(own, known_attention(own, attention)))
        return PackedAnswer({"attention": attention}, {f"weights:{attention}": values})

    @routes.get("/row")
    def row(trace: Id, attention: Path, head: Place, query: Place) -> PackedAnswer:
        return PackedAnswer(*asked(trace, lambda own: row_bundle(own, attention, head=head, query=query)))

    @routes.get("/python")
    def python(trace: Id, attention: Path, head: Place, query: Place, key: Place) -> JsonAnswer:
        def program(own: Any) -> dict[str, str]:
            return {"program": own.cell(attention, head=head, query=query, key=key).python()}

        return JsonAnswer(asked(trace, program))

    @routes.get("/lens")
    def lens(trace: Id, top: Annotated[int, Query(ge=1, le=50)] = 5) -> JsonAnswer:
        return or_refused(trace, lambda own: own.lens(top=top).to_json())

    @routes.get("/tree")
    def tree(trace: Id) -> JsonAnswer:
        return or_refused(trace, lambda own: own.beam_tree().to_json())

    @routes.get("/checks")
    def checks(trace: Id) -> JsonAnswer:
        return or_refused(trace, lambda own: own.checks().to_json())

    @routes.get("/probes")
    def probes(run: Path) -> JsonAnswer:
        folder = session.opened(run).folder
        return JsonAnswer(read_probes(folder).to_json())

    return routes


def known_attention(trace: Any, path: str) -> str:
    """A path that is one of the trace's attentions; refuse any other."""
    from regard.errors import did_you_mean

    if path not in trace.attentions():
        raise UsageError(f"There is no attention '{path}' in this trace.", did_you_mean(path, trace.attentions()))
    return path


def packed_trace(session: Session, kept: KeptTrace) -> PackedAnswer:
    """A trace as the page has it."""
    facts, arrays = session.work(lambda: trace_bundle(kept.trace))
    return PackedAnswer({**facts, **session.trace_facts(kept)}, arrays)
