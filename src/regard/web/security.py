"""What a browser may do with the page, and who may ask: headers, the Host header, the origin and size of requests.

The server listens on loopback only. A page of another site could still reach it through the user's browser: by a name
that it lets point here (DNS rebinding: the Host header is checked), or by a form or a fetch across origins (the origin is
checked, and only JSON is taken, which a form cannot send). Nothing allows another origin to read an answer.
"""

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.runs.disk import as_json

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_BODY = 8_000_000  # bytes of a request
TOO_LARGE = (413, f"A request has at most {MOST_BODY:,} bytes.", "Send a smaller one.")


class Guard:
    """Lets through what the page itself asks, and sends the headers of safety with every answer.

    port: on which the server listens; None for any, as in tests
    """

    def __init__(self, app: ASGIApp, port: Callable[[], int | None]) -> None:
        self.app = app
        self.port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refusal(headers, scope["method"])
        if refused is not None:
            await _answer(guarded, *refused)
            return
        if scope["method"] == "POST":
            body = await _read_body(receive)
            if body is None:
                await _answer(guarded, *TOO_LARGE)
                return
            receive = _replayed(body, receive)
        await self.app(scope, receive, guarded)

    def _refusal(self, headers: Headers, method: str) -> tuple[int, str, str] | None:
        """Status, first and second line, where a request is not from the page."""
        hosts = self._hosts()
        if headers.get("host", "").lower() not in hosts:
            return 421, "This server answers to its own address only.", f"Open http://{hosts[0]}/"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in [f"http://{host}" for host in hosts]:
            return 403, "This request comes from another site.", f"Open http://{hosts[0]}/"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return 403, "This request comes from another site.", f"Open http://{hosts[0]}/"
        if method not in ("GET", "HEAD", "POST"):
            return 405, f"There is nothing to {method[:20]} here.", "Use GET or POST."
        if method == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "Requests are sent as JSON.", "Send Content-Type: application/json."
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length) > MOST_BODY:
                return TOO_LARGE
        return None

    def _hosts(self) -> list[str]:
        port = self.port()
        return [*LOOPBACK] if port is None else [f"{name}:{port}" for name in LOOPBACK]


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body of a request; None where it is too long, however much it says to have, or the client is gone."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] == "http.disconnect" or len(body) > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What an application receives of a request whose body was read: the body, then whatever comes."""
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


async def _answer(send: Callable[[Message], Awaitable[None]], status: int, error: str, advice: str) -> None:
    body = as_json({"error": error, "advice": advice})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
