"""The application: routes, the files of the page, and what becomes of errors."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from regard.errors import RegardError
from regard.web.answers import JsonAnswer, error_answer
from regard.web.inspector_routes import inspector_routes
from regard.web.page_files import INDEX, media_type, page_files
from regard.web.run_routes import run_routes
from regard.web.security import Guard
from regard.web.session import BusyError, Session, UnknownError
from regard.web.trace_request import OtherInput

# Whatever the environment says: nothing of what is read here leaves the machine.
NO_TELEMETRY: Any = {"auto_configure": False, "tracing": False, "metrics": False, "logs": False}


def make_app(session: Session, *, port: Callable[[], int | None] = lambda: None) -> ASGIApp:
    """The page and its routes over a session; `port`: on which the server listens, once it does."""
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, default_response_class=JsonAnswer, telemetry=NO_TELEMETRY
    )
    app.state.session = session
    app.include_router(run_routes(session))
    app.include_router(inspector_routes(session))
    _add_page(app)
    _add_errors(app)
    return Guard(app, port)


def _add_page(app: FastAPI) -> None:
    @app.get("/")
    def index() -> Response:
        return _file(INDEX)

    @app.get("/page/{name}")
    def file(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    """A file of the page, read anew each time, so that whoever changes one sees it."""
    content = page_files().get(name)
    if content is None:
        return error_answer(404, "There is no such page.", "Open /")
    return Response(content, headers={"content-type": media_type(name)})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RegardError)
    async def of_people(request: Request, error: RegardError) -> Response:
        status = 404 if isinstance(error, UnknownError) else 409 if isinstance(error, BusyError) else 400
        return error_answer(status, error.problem, error.remedy)

    @app.exception_handler(RequestValidationError)
    async def of_requests(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        # Of an input that may be one of several kinds, the name of the kind is no part of the place.
        places = [str(part) for part in first["loc"][1:] if part not in ("str", OtherInput.__name__)]
        return error_answer(400, f"{'.'.join(places) or 'The request'}: {first['msg']}.", "Send another value.")

    @app.exception_handler(HTTPException)
    async def of_paths(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            return error_answer(404, f"There is nothing at {request.url.path[:200]}.", "Open /")
        return error_answer(error.status_code, f"{error.detail}.", "Send another request.")

    @app.exception_handler(Exception)
    async def of_ours(request: Request, error: Exception) -> Response:
        return error_answer(500, f"This is a defect of regard: {type(error).__name__}.", "The terminal says more.")
