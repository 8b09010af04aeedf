"""The server of the page: uvicorn on loopback, at a port of its own choice or the one asked for, until Ctrl-C."""

import logging
import socket
from asyncio import CancelledError
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from regard.errors import UsageError
from regard.web.app import make_app
from regard.web.session import Session

HOST = "127.0.0.1"


class _Server(uvicorn.Server):
    """Ends the streams of events as soon as it is told to end, and does not wait for the browser to close them."""

    def __init__(self, config: uvicorn.Config, session: Session) -> None:
        super().__init__(config)
        self._session = session

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._session.closed.set()
        super().handle_exit(sig, frame)


class PageServer:
    """A server that listens; `run` serves until `stop` is called, or by a signal."""

    def __init__(self, session: Session, *, port: int = 0) -> None:
        self.session = session
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            make_app(session, port=lambda: self.port),
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = _Server(config, session)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}/"

    def run(self) -> None:
        """Serve until told to stop."""
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.session.close()

    def stop(self) -> None:
        """Let `run` return; from another thread."""
        self.session.closed.set()
        self._server.should_exit = True


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a message of the server is worth a line: not that what was under way ends with it."""
    of_end = record.exc_info is not None and isinstance(record.exc_info[1], CancelledError)
    return not (of_end or record.getMessage().endswith("timeout graceful shutdown exceeded"))


def serve(session: Session, *, port: int = 0, on_ready: Callable[[str], Any] = lambda url: None) -> None:
    """Serve a session's page until Ctrl-C; `on_ready` is told its address once it can be opened."""
    server = PageServer(session, port=port)
    on_ready(server.url)
    server.run()


def _listening(port: int) -> socket.socket:
    """A socket on loopback; 0 takes a free port."""
    # Named as TCP, so that asyncio sends each answer at once: else it waits 40 ms for the acknowledgement of its headers.
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((HOST, port))
        own.listen(128)
    except OSError as error:
        own.close()
        raise UsageError(
            f"Port {port} of this machine cannot be used: {error.strerror}.",
            "Name another: --port 8001, or leave it out.",
        ) from error
    return own
