"""The documentation: its code runs and prints what it shows, links lead somewhere, and all public names are in it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import abelnet
from abelnet import laws
from abelnet.bijections import FAMILIES
from abelnet.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Pages whose Python blocks, and lines "$ abelnet ..." of console blocks, are run in order, as one program in an empty
# folder; with what they print beside the output that they show.
PAGES = {
    "README.md": "x∘y = x + y + x·y",
    "docs/tutorial-table.md": "x∘y = x + y + x·y\n",
    "docs/tutorial-sets.md": "x∘y = (x^2 + y^2)^(1/2)\n",
    "docs/tutorial-words.md": "queen",
    "docs/learning.md": "x∘y = x + y − x·y",
    "docs/scikit-learn.md": "{'only': 'folds'} x∘y = (x^2 + y^2)^(1/2)",
    "docs/dask.md": "x∘y = x + y + x·y",
    "docs/export.md": "",
    "docs/sets.md": "",
    "docs/hub.md": "x∘y = (x^2 + y^2)^(1/2)",
    "docs/pyg.md": "",
    "docs/saving.md": "",
    "docs/sql.md": "",
    "docs/theory.md": "",
    "docs/tour.md": "associativity",
    "docs/windows.md": "",
    "docs/your-own.md": "",
}
# Pages with Python that does not run here: it needs several machines, another extra, the reader's data, or minutes.
NOT_RUN = {"docs/machines.md", "docs/lightning.md", "docs/vectors.md", "docs/words.md"}


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = (ROOT / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    ran = 0
    for match in BLOCK.finditer(text):
        language, block = match.groups()
        if language == "python":
            lines = "\n" * text[: match.start(2)].count("\n")  # so that a traceback has the line of the page
            exec(compile(lines + block, name, "exec"), names)
            printed += capsys.readouterr().out
            ran += 1
        elif language == "console":
            ran += run_console(block)
    assert ran > 0
    assert PAGES[name] in printed


def run_console(block: str) -> int:
    """Runs the commands of a console block; each line that follows is in their output, but for spaces."""
    commands = re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    for command in commands:
        line, *shown = command.splitlines()
        arguments = shlex.split(line)
        assert arguments[0] == "abelnet", f"expected an abelnet command, got {line}"
        result = CliRunner().invoke(app, arguments[1:], env={"COLUMNS": "200"})
        assert result.exit_code == 0, f"{line}: {result.output}"
        words = " ".join(result.output.split())
        for one in shown:
            assert " ".join(one.split()) in words, f"{line}: {one!r} is not in {result.output}"
    return len(commands)


def test_every_page_with_code_is_run_or_excused() -> None:
    with_code = {
        str(path.relative_to(ROOT)) for path in TEXTS if re.search(r"^```python", path.read_text("utf-8"), re.MULTILINE)
    }
    assert with_code == {*PAGES, *NOT_RUN}


@pytest.fixture(scope="module", params=["draw_gallery", "draw_overview"])
def tool(request: pytest.FixtureRequest) -> ModuleType:
    spec = importlib.util.spec_from_file_location(request.param, ROOT / "tools" / f"{request.param}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_drawings_are_current(tool: ModuleType) -> None:
    for path, text in tool.pages():
        assert path.read_text(encoding="utf-8") == text, f"run python tools/{tool.__name__}.py"


def test_the_gallery_has_every_law_and_family() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    families = [name[0].upper() + name[1:] for name in FAMILIES]
    named = [name for name in laws.__all__ if name not in ("Law", "PlainForm")]
    assert sorted(re.findall(r"^### (.*)$", page, re.MULTILINE)) == sorted(named + families)


def anchors(path: Path) -> set[str]:
    """Returns the anchors of the headings of a page, as GitHub and MyST make them."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.strip()).replace(" ", "-") for heading in plain}


def links(path: Path) -> Iterator[str]:
    """Yields the targets of links and images of a page, but for addresses."""
    text = re.sub(r"`[^`\n]*`", "", BLOCK.sub("", path.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(<?([^)\s>]+)>?\)|(?:src|srcset|href)=\"([^\"]+)\"", text):
        one = "".join(target)
        if not re.match(r"[a-z]+:", one):
            yield one


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{path.name}: no such file: {link}"
        if anchor:
            assert anchor in anchors(target), f"{path.name}: no such heading: {link}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_tests_that_are_named_exist(path: Path) -> None:
    file = None
    for named, test in re.findall(
        r"`((?:abelnet|benchmarks|tests|tools)/[\w/.-]+\.\w+)?(?:::(\w+))?`", path.read_text("utf-8")
    ):
        if named:
            file = ROOT / named
            assert file.exists(), f"{path.name}: no such file: {named}"
        if test:  # of the file that was named last
            assert file is not None
            assert f"def {test}(" in file.read_text(encoding="utf-8"), f"{path.name}: no such test: {test}"


def test_every_page_is_in_the_index() -> None:
    listed = re.findall(r"^[\w-]+$", "\n".join(re.findall(r"```{toctree}\n(.*?)```", index(), re.DOTALL)), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == {path.stem for path in DOCS.glob("*.md")} - {"index"}


def index() -> str:
    return (DOCS / "index.md").read_text(encoding="utf-8")


def documented() -> set[str]:
    """Returns the names, with their modules, that docs/reference.md lists."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    found: set[str] = set()
    for name, options in re.findall(r"^\.\. automodule:: (\S+)\n((?: +:.*\n)*)", text, re.MULTILINE):
        module = importlib.import_module(name)
        members = re.search(r":members:(.*)", options)
        if members is None:
            continue
        listed = [one.strip() for one in members.group(1).split(",") if one.strip()]
        found |= {f"{name}.{one}" for one in listed or module.__all__}
    return found | set(re.findall(r"^\.\. auto(?:class|function|data|exception):: (\S+)", text, re.MULTILINE))


def homes(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yields the public names of a package, and the module in which each is defined."""
    assert module.__file__ is not None
    source = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: node.module
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for name in module.__all__:
        value = getattr(module, name)
        named = inspect.isclass(value) or inspect.isfunction(value)
        yield name, value.__module__ if named else imported.get(name, module.__name__)


PACKAGES = [
    "abelnet",
    "abelnet.bijections",
    "abelnet.bijections.families",
    "abelnet.bijections.terms",
    "abelnet.discovery",
    "abelnet.sql",
    "abelnet.laws",
    "abelnet.nn",
    "abelnet.training",
    "abelnet.verify",
    "abelnet.words",
    "abelnet.words.methods",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    listed = documented()
    package = importlib.import_module(name)
    missing = []
    for one, home in homes(package):
        places = {f"{home}.{one}", f"{name}.{one}"}
        if one != "__version__" and not places & listed:
            missing.append(f"{home}.{one}")
    assert not missing


def test_all_packages_with_public_names_are_checked() -> None:
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "abelnet").rglob("__init__.py")
        if "__all__" in path.read_text(encoding="utf-8")
    }
    assert packages - {"abelnet.cli"} == set(PACKAGES)
    assert abelnet.__version__
