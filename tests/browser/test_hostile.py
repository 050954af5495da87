"""What should not be given to the page: large and binary files, markup, a million rows, 50 clicks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from abelnet.explore.server import Explorer

ADDITIONS = "\n".join(f"{a},{b},{a + b}" for a in range(5) for b in range(5))
MB = 2**20


def memory(explorer: Explorer) -> float:
    """Returns the memory of the largest process of the page but this one, in MB."""
    sizes = [0.0]
    for worker in explorer.workers.values():
        if worker.pid is not None:
            pages = int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1])
            sizes.append(pages * os.sysconf("SC_PAGE_SIZE") / MB)
    return max(sizes)


def own_memory() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def assert_alive(page: Any) -> None:
    page.learn(f"a,b,sum\n{ADDITIONS}\n")
    assert page.formulas == ["x∘y = x + y"]


def test_a_file_of_200_mb_is_refused(page: Any, explorer: Explorer, tmp_path: Path) -> None:
    page.open("laws")
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(200 * MB)
    before = own_memory()
    page["law-file"].send_keys(str(path))
    page.wait(lambda: "The table has 200 MB, and at most 20 MB" in page["law-result"].text)
    assert own_memory() - before < 50
    assert_alive(page)


def test_a_body_of_200_mb_is_refused_by_the_server(page: Any, explorer: Explorer) -> None:
    page.open("laws")
    before = own_memory()
    answer = page.driver.execute_async_script(
        """const done = arguments[0];
        const headers = {"Content-Type": "application/json"};
        fetch("/api/learn", {method: "POST", headers, body: " ".repeat(200 * 2 ** 20)})
          .then(async (response) => done([response.status, (await response.json()).error]))
          .catch((error) => done(String(error)))"""
    )
    assert answer[0] == 413
    assert answer[1].startswith("table: expected at most 20 MB, got 200 MB; take a sample")
    assert own_memory() - before < 50
    page.complaints()  # Chromium complains about the status
    assert_alive(page)


def test_a_binary_file_is_refused(page: Any, tmp_path: Path) -> None:
    page.open("laws")
    path = tmp_path / "picture.csv"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1000)
    page["law-file"].send_keys(str(path))
    page.wait(lambda: "This file is not text in UTF-8" in page["law-result"].text)
    path = tmp_path / "zeros.csv"
    path.write_bytes(b"a,b\n1,\x002\n")
    page["law-file"].send_keys(str(path))
    page.wait(lambda: "is it a binary file" in page["law-status"].text)
    assert_alive(page)


def test_markup_in_cells_and_headers_is_text(page: Any) -> None:
    page.open("laws")
    script = "<script>window.stolen=1</script>"
    image = "<img src=x onerror='window.stolen=1'>"
    header = f"{script},{image},</textarea></math><svg onload=window.stolen=1>"
    page.choose("law-preset", "")
    page.write("law-text", f"{header}\n" + "".join(f"{image}{i // 2},{i},{i // 2 * 4 + 1}\n" for i in range(80)))
    page.wait(lambda: page.header() == header.split(","))
    assert page.all("#law-columns td")[0].text.startswith("<img src=x")
    page.run_law()
    assert page.formulas == ["x∘y = x + y"]
    assert image in page["law-result"].text
    for name in ("python", "latex", "sql"):
        page.choose("code-language", name)
    assert page.script("return window.stolen") is None
    assert not page.all("#panel-laws img, #panel-laws script, #law-result svg[onload]")
    page.open("analogies")
    page.write("word-pairs", f"{image.replace(' ', '_')}:paris")
    page["word-run"].click()
    page.wait(lambda: "expected a vocabulary word" in page["word-result"].text)
    assert page.script("return window.stolen") is None


def test_markup_in_coordinates_is_text(page: Any) -> None:
    page.open("laws")
    rows = []
    for i in range(60):
        bodies = [(1 + (i * k) % 5, (i + 2 * k) % 7 - 3) for k in (1, 2, 3)]
        mass = sum(m for m, _ in bodies)
        place = sum(m * x for m, x in bodies) / mass
        rows += [f"{i},{m},{x},{mass},{place!r}" for m, x in bodies]
    page.learn("set,<b>m</b>,<i onclick=window.stolen=1>,M<sub>,X\n" + "\n".join(rows))
    assert page.formulas == [
        "<b>m</b> = Σ <b>m</b>, <i onclick=window.stolen=1> = Σ(<b>m</b>·<i onclick=window.stolen=1>) / <b>m</b>"
    ]
    assert not page.all("#law-result b, #law-result i, #law-result sub")
    assert page.script("return window.stolen") is None


def test_a_million_rows_are_refused_with_a_message(page: Any, explorer: Explorer) -> None:
    page.open("laws")
    text = "set,x,y\n" + "".join(f"{i // 2},{i % 7},{i % 5}\n" for i in range(1_000_000))
    before = own_memory()
    page.paste("law-text", text)
    page.wait(lambda: "about 1,000,000 rows" in page["law-held"].text)
    page.wait(lambda: "expected at most 200,000 rows, got 1,000,000" in page["law-status"].text)
    page["law-run"].click()
    page.wait(lambda: page.all("#law-result .message"))
    assert own_memory() - before < 200
    assert memory(explorer) < 1000
    page["law-held"].find_element("tag name", "button").click()
    assert_alive(page)


def test_100_000_rows_are_learned_from(page: Any, explorer: Explorer) -> None:
    page.open("laws")
    sets = ((i, i % 7 / 2, i % 11 / 4) for i in range(50_000))
    page.paste("law-text", "set,x,y\n" + "".join(f"{i},{a},{a + b}\n{i},{b},{a + b}\n" for i, a, b in sets))
    page.wait(lambda: page.header() == ["set", "x", "y"])
    page.run_law()
    assert page.formulas == ["x∘y = x + y"]
    assert memory(explorer) < 1500


def test_50_clicks_at_once_are_one_request(page: Any) -> None:
    page.open("laws")
    page.wait(lambda: page.header())
    page.note_requests()
    before = sum(url.endswith("/api/learn") for url in page.requests)
    page.script("for (let i = 0; i < 50; i++) document.getElementById('law-run').click()")
    page.wait(lambda: page.all("#law-result .law"))
    page.note_requests()
    assert sum(url.endswith("/api/learn") for url in page.requests) == before + 1
    assert_alive(page)


def test_50_requests_at_once_leave_the_page_alive(page: Any, explorer: Explorer) -> None:
    page.open("laws")
    statuses = page.driver.execute_async_script(
        """const [text, done] = arguments;
        const body = JSON.stringify({text, values: ["a", "b"], targets: ["sum"]});
        const headers = {"Content-Type": "application/json"};
        Promise.all(Array.from({length: 50}, () => fetch("/api/learn", {method: "POST", headers, body})
          .then(async (response) => { await response.text(); return response.status })))
          .then(done, (error) => done(String(error)))""",
        f"a,b,sum\n{ADDITIONS}\n",
    )
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    assert memory(explorer) < 1000
    page.complaints()  # of statuses 503
    assert_alive(page)
