from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import HOST, PORT, Client

from regard.web.page_files import page_files
from regard.web.security import MOST_BODY, POLICY

HOSTILE = "<img src=x onerror=alert(1)> </script> &amp; \"'"


def status(page: Client, method: str, path: str, **given: Any) -> int:
    answer = page.ask(method, path, **given)
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error", "advice"}
    return answer.status_code


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"])
def test_the_server_answers_to_its_own_names(page: Client, host: str) -> None:
    assert status(page, "GET", "/api/session", headers={"host": host}) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{PORT}", ""]
)
def test_a_name_that_was_made_to_point_here_is_refused(page: Client, host: str) -> None:
    for method, path in (("GET", "/"), ("GET", "/page/main.js"), ("GET", "/api/session"), ("POST", "/api/trace")):
        assert status(page, method, path, headers={"host": host}) == 421


def test_another_site_is_refused(page: Client, watched: Path) -> None:
    body = {"run": str(watched), "input": "the dog"}
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert status(page, "POST", "/api/trace", json=body, headers=headers) == 403
        assert status(page, "GET", "/api/session", headers=headers) == 403
    own = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    assert status(page, "POST", "/api/trace", json=body, headers=own) == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_refused(page: Client, kind: str) -> None:
    assert status(page, "POST", "/api/trace", content=b"{}", headers={"content-type": kind}) == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_there_are_no_other_methods(page: Client, method: str) -> None:
    answer = page.ask(method, "/api/session")
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_a_body_is_bounded_whether_it_tells_its_length_or_not(page: Client) -> None:
    json = {"content-type": "application/json"}
    assert status(page, "POST", "/api/trace", content=b" " * (MOST_BODY + 1), headers=json) == 413
    assert status(page, "POST", "/api/trace", content=b"{}", headers={**json, "content-length": "-1"}) == 413

    async def chunks() -> Any:
        for _ in range(MOST_BODY // 1_000_000 + 1):
            yield b" " * 1_000_000

    assert status(page, "POST", "/api/trace", content=chunks(), headers=json) == 413


def test_a_body_that_is_no_json_is_refused(page: Client) -> None:
    json = {"content-type": "application/json"}
    for content in (b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"run": NaN}', b"[" * 100_000):
        assert status(page, "POST", "/api/trace", content=content, headers=json) == 400


def test_every_answer_has_the_headers_of_safety(page: Client) -> None:
    for path in ("/", "/page/main.js", "/api/session", "/nowhere", "/api/row"):
        headers = page.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control")]
    assert "unsafe" not in POLICY and "*" not in POLICY


def test_every_file_of_the_page_is_served_with_its_type(page: Client) -> None:
    files = page_files()
    assert {"index.html", "main.js", "style.css"} <= set(files)
    assert page.get("/").content == files["index.html"]
    kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
    for name, content in files.items():
        answer = page.get(f"/page/{name}")
        assert answer.content == content
        assert answer.headers["content-type"].startswith(kinds[Path(name).suffix])


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e/app.py",
        "/page/..%5capp.py",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/",
        "/page",
        "/app.py",
        "/page/app.py",
        "/page/main.js%00",
        "/docs",
        "/openapi.json",
    ],
)
def test_nothing_else_of_the_disk_is_served(page: Client, path: str) -> None:
    assert page.get(path).status_code == 404


def test_hostile_text_comes_back_as_it_was_and_only_as_data(page: Client, watched: Path) -> None:
    facts, _ = page.trace(watched, HOSTILE)
    assert facts["title"] == HOSTILE
    source = facts["positions"][facts["memory"]]
    assert source["text"] == HOSTILE
    assert "".join(source["text"][begin:end] for begin, end in source["spans"]) == HOSTILE
    answer = page.post("/api/trace", {"run": f"{watched}{HOSTILE}", "input": "a"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert HOSTILE in answer.json()["error"]
    assert page.get(f"/{HOSTILE}").headers["content-type"] == "application/json"
