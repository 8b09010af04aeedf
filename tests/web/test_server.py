"""A server that really listens: begun and ended, events, the port, a trainer at work."""

import http.client
import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import pytest

from regard.errors import UsageError
from regard.runs.folder import RunFolder
from regard.web import run_routes
from regard.web.server import PageServer, serve
from regard.web.session import Session


@contextmanager
def serving(*runs: Path) -> Iterator[PageServer]:
    server = PageServer(Session([str(run) for run in runs], threads=1))
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()


@contextmanager
def asked(server: PageServer, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            yield answer
    finally:
        connection.close()


def get(server: PageServer, path: str, **headers: str) -> tuple[int, bytes]:
    with asked(server, path, **headers) as answer:
        return answer.status, answer.read()


def next_event(stream: http.client.HTTPResponse) -> tuple[str, Any]:
    """The next event of a stream, without its signs of life."""
    name = ""
    while line := stream.readline().decode().rstrip("\n"):
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
    return name, data


def test_a_server_begins_answers_and_ends(watched: Path) -> None:
    with serving(watched) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/"
        assert get(server, "/")[1].startswith(b"<!doctype html>")
        assert json.loads(get(server, "/api/session")[1])["runs"][0]["name"] == str(watched)
        assert get(server, "/", host="evil.example")[0] == 421
    with pytest.raises(ConnectionRefusedError):
        get(server, "/")


def test_only_this_machine_is_answered_and_at_once(watched: Path) -> None:
    with serving(watched) as server:
        assert server._socket.getsockname()[0] == "127.0.0.1"
        assert server._socket.proto == socket.IPPROTO_TCP  # by which asyncio knows to set TCP_NODELAY


def test_a_port_that_is_taken_is_refused(watched: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            UsageError, match=rf"^Port {port} of this machine cannot be used: Address already in use\.\n"
        ):
            serve(Session([str(watched)]), port=port)


def test_an_event_comes_when_a_step_is_recorded(own_watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_routes, "EVERY", 0.02)
    traces = RunFolder(own_watched).traces
    with serving(own_watched) as server, asked(server, f"/api/events?run={own_watched}") as stream:
        assert stream.getheader("content-type", "").startswith("text/event-stream")
        assert next_event(stream) == ("probes", {"steps": [0, 10, 20, 30]})
        # As the trainer writes it: aside, then renamed. What is half-written is no step.
        shutil.copytree(traces / "step-00000030", traces / ".tmp-step-00000040-1")
        (traces / ".tmp-step-00000040-1").rename(traces / "step-00000040")
        assert next_event(stream) == ("probes", {"steps": [0, 10, 20, 30, 40]})
        shutil.rmtree(traces / "step-00000010")
        assert next_event(stream) == ("probes", {"steps": [0, 20, 30, 40]})
        # A server that ends does not wait for a browser that listens.


def test_a_quiet_stream_shows_that_it_lives_and_ends_with_the_server(
    watched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_routes, "EVERY", 0.001)
    with serving(watched) as server, asked(server, f"/api/events?run={watched}") as stream:
        next_event(stream)
        assert stream.readline() == b": nothing new\n"
        server.stop()
        assert stream.read().replace(b": nothing new\n", b"").strip() == b""


def test_events_of_a_run_that_is_not_open_are_refused(watched: Path) -> None:
    with serving(watched) as server:
        status, content = get(server, "/api/events?run=/etc")
        assert (status, json.loads(content)["error"]) == (404, "The run '/etc' is not open here.")


def test_a_defect_is_said_without_its_inside(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*anything: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(run_routes, "token_facts", broken)
    with serving(watched) as server:
        status, content = get(server, f"/api/tokens?run={watched}&text=a")
        assert (status, json.loads(content)["error"]) == (500, "This is a defect of regard: RuntimeError.")
        assert get(server, "/api/session")[0] == 200  # and the rest goes on


def test_nothing_is_reported_to_anybody(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as collector:
        collector.bind(("127.0.0.1", 0))
        collector.listen()
        collector.setblocking(False)
        address = f"http://127.0.0.1:{collector.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with serving(watched) as server:
            assert get(server, f"/api/tokens?run={watched}&text=secret")[0] == 200
        with pytest.raises(BlockingIOError):
            collector.accept()


def test_an_end_amid_work_says_nothing(
    watched: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    begun, end = Event(), Event()

    def slow(self: Session, request: object) -> None:
        begun.set()
        end.wait(timeout=60)
        raise UsageError("Too late.")

    monkeypatch.setattr(Session, "trace", slow)
    body = json.dumps({"run": str(watched), "input": "a dog"})
    with serving(watched) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/api/trace", body=body, headers={"Content-Type": "application/json"})
        assert begun.wait(timeout=60)
        server._server.config.timeout_graceful_shutdown = 0
        Timer(1.0, end.set).start()
    connection.close()
    assert capfd.readouterr().err == ""
