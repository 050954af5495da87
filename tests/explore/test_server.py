"""The server by real requests: what is served, what is refused, and that it lives through both."""

from __future__ import annotations

import http.client
import json
import re
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

from abelnet.errors import AbelnetError
from abelnet.explore.server import MOST_BYTES, Explorer, open_page

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    with Explorer(waiting=3) as started:
        started.start()
        yield started


def ask(
    explorer: Explorer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", explorer.server_port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def post(explorer: Explorer, task: str, given: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """Returns the status and the last line of an answer."""
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    status, _, content = ask(explorer, "POST", f"/api/{task}", body, JSON | more)
    return status, json.loads(content.splitlines()[-1])


def test_the_page_and_its_parts(explorer: Explorer) -> None:
    status, headers, content = ask(explorer, "GET", "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]
    names = re.findall(r'(?:src|href)="([^"#]+)"', content.decode())
    assert {"main.js", "style.css", "charts.css", "icon.svg"} <= set(names)
    for name in names:
        status, headers, content = ask(explorer, "GET", f"/{name}")
        assert (status, bool(content)) == (200, True)
        assert headers["Content-Type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml")
    status, headers, content = ask(explorer, "HEAD", "/")
    assert (status, content) == (200, b"")


def test_the_page_needs_nothing_from_elsewhere_and_no_inline_code() -> None:
    folder = resources.files("abelnet.explore") / "static"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/)[a-z0-9-]+\.[a-z]", text), file.name
        assert not re.findall(r"\bstyle=|<script>|\son\w+=\"|innerHTML|outerHTML|insertAdjacentHTML|eval\(", text), (
            file.name
        )


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/static/index.html", "/%2e%2e/server.py", "//etc/passwd", "/..%2f..%2f", "/api/learn", "/x\0"],
)
def test_other_paths_are_not_found(explorer: Explorer, path: str) -> None:
    with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{explorer.server_port}\r\n\r\n".encode())
        assert connection.recv(100).split()[1] in (b"404", b"400")


def test_hosts_of_others_are_refused(explorer: Explorer) -> None:
    port = explorer.server_port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.evil:{port}",
    ):
        assert ask(explorer, "GET", "/", headers={"Host": host})[0] == 421
        assert post(explorer, "presets", {}, Host=host)[0] == 421
    assert ask(explorer, "GET", "/", headers={"Host": f"localhost:{port}"})[0] == 200


def test_requests_of_other_pages_are_refused(explorer: Explorer) -> None:
    own = explorer.address.rstrip("/")
    assert post(explorer, "presets", {}, Origin=own, Sec_Fetch_Site="same-origin")[0] == 200
    for origin in ("http://evil.example", "null", own.replace("http", "https"), f"{own}0"):
        status, answer = post(explorer, "presets", {}, Origin=origin)
        assert (status, answer["error"]) == (403, "origin: expected a request of the page itself")
    assert post(explorer, "presets", {}, Sec_Fetch_Site="cross-site")[0] == 403
    assert post(explorer, "presets", {}, Content_Type="text/plain")[0] == 415
    assert ask(explorer, "GET", "/", headers={"Origin": "http://evil.example"})[0] == 403
    assert ask(explorer, "GET", "/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200  # a link


def test_a_task_answers_with_its_steps(explorer: Explorer) -> None:
    lines = [f"{a},{b},{a + b}" for a in range(5) for b in range(5)]
    given = {"text": "a,b,sum\n" + "\n".join(lines), "values": ["a", "b"], "targets": ["sum"]}
    status, headers, content = ask(explorer, "POST", "/api/learn", json.dumps(given).encode(), JSON)
    *steps, result = (json.loads(line) for line in content.splitlines())
    assert status == 200
    assert headers["Content-Type"] == "application/x-ndjson"
    assert "learning" in [step["step"] for step in steps]
    law = result["result"]["laws"][0]
    assert law["formula"] == "x∘y = x + y"
    answer = post(explorer, "predict", {"id": result["result"]["id"], "elements": "1 2 3"})[1]
    assert answer["result"]["results"][0]["value"] == "6"


def test_errors_are_one_line(explorer: Explorer) -> None:
    for body in (b"{", b"\xff\xfe", b"[]", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100):
        status, answer = post(explorer, "inspect", body)
        assert status == 200
        assert "\n" not in answer["error"]
    assert post(explorer, "nothing", {})[0] == 404
    assert ask(explorer, "PUT", "/")[0] == 501
    assert ask(explorer, "DELETE", "/api/presets")[0] == 501


def test_200_mb_are_refused_by_their_length(explorer: Explorer) -> None:
    size = 200 * 2**20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=30) as connection:
        head = f"POST /api/learn HTTP/1.1\r\nHost: 127.0.0.1:{explorer.server_port}\r\nContent-Length: {size}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        chunk = b" " * 2**20
        for _ in range(200):
            connection.sendall(chunk)
        answer = b""
        while part := connection.recv(2**16):
            answer += part
    assert b" 413 " in answer.splitlines()[0]
    assert b"expected at most 20 MB, got 200 MB; take a sample" in answer
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024  # kB


def test_large_bodies_are_refused_before_they_are_sent(explorer: Explorer) -> None:
    with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=30) as connection:
        head = f"POST /api/learn HTTP/1.1\r\nHost: 127.0.0.1:{explorer.server_port}\r\nExpect: 100-continue\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {10**12}\r\n\r\n".encode())
        assert b" 413 " in connection.recv(2**16).splitlines()[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "ten"}, 411),
        ({"Content-Length": "9" * 4000}, 411),
    ],
)
def test_a_body_has_a_length(explorer: Explorer, headers: dict[str, str], status: int) -> None:
    with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=30) as connection:
        given = {"Host": f"127.0.0.1:{explorer.server_port}", "Content-Type": "application/json", **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        connection.sendall(f"POST /api/presets HTTP/1.1\r\n{lines}\r\n".encode())
        assert connection.recv(2**16).split()[1] == str(status).encode()


def test_a_million_rows_are_refused(explorer: Explorer) -> None:
    text = "set,x,y\n" + "1,2,3\n" * 1_000_000
    assert len(text) < MOST_BYTES
    status, answer = post(explorer, "inspect", {"text": text})
    assert status == 200
    assert answer["error"].startswith("table: expected at most 200,000 rows, got 1,000,000; take a sample")


def test_50_requests_at_once(explorer: Explorer) -> None:
    statuses: Counter[int] = Counter()
    given = {"text": "set,x,y\n" + "".join(f"{i // 2},{i},{i}\n" for i in range(30_000))}

    def one() -> None:
        status, answer = post(explorer, "inspect", given)
        statuses[status] += 1
        assert ("result" in answer) == (status == 200)
        assert status == 200 or answer["error"].startswith("busy: 3 requests are waiting already; try again")

    threads = [threading.Thread(target=one) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses[200] >= 1
    assert statuses[503] >= 1
    assert statuses.total() == 50
    assert ask(explorer, "GET", "/")[0] == 200
    assert post(explorer, "presets", {})[0] == 200


def test_bodies_of_refused_requests_are_not_kept(explorer: Explorer) -> None:
    """30 requests of 15 MB are 450 MB; those that wait are 60 MB."""
    body = b'{"text": "' + b" " * (15 * 2**20) + b'"}'
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(post(explorer, "inspect", body)[0])) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200, 503}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # kB


def test_idle_connections_are_limited(explorer: Explorer) -> None:
    idle = [socket.create_connection(("127.0.0.1", explorer.server_port), timeout=10) for _ in range(70)]
    answers = [connection.recv(100)[:12] for connection in idle[64:]]
    for connection in idle:
        connection.close()
    assert answers == [b"HTTP/1.0 503"] * 6
    for _ in range(100):
        time.sleep(0.02)
        try:
            if ask(explorer, "GET", "/")[0] == 200:
                break
        except OSError:
            pass
    else:
        pytest.fail("the server does not answer after idle connections were closed")


def test_whoever_leaves_disturbs_nobody(explorer: Explorer) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", explorer.server_port), timeout=10) as connection:
            connection.sendall(b"POST /api/presets HTTP/1.1\r\nHost: ")
    assert post(explorer, "presets", {})[0] == 200


def test_a_port_in_use_is_named(explorer: Explorer) -> None:
    with pytest.raises(AbelnetError, match=f"port: expected a free one, got {explorer.server_port}, which is in use"):
        Explorer(explorer.server_port)


def test_only_this_machine_is_served(explorer: Explorer) -> None:
    assert explorer.server_address[0] == "127.0.0.1"


def test_the_browser_is_opened_if_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    open_page("http://127.0.0.1:1/")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    open_page("http://127.0.0.1:1/")
    assert opened == ["http://127.0.0.1:1/"]
