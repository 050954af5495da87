"""The house: its picture is current, tests mirror it, and no module reaches for the private names of another."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "abelnet").rglob("*.py"))
# Tests that belong to no module alone: of the house, of the examples, of the release, of classes of a user's own.
APART = {
    "test_docs.py",
    "test_fuzz.py",
    "test_kill.py",
    "test_house.py",
    "test_examples.py",
    "test_release.py",
    "test_toys.py",
}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_house", ROOT / "tools" / "draw_house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_and_the_listing_are_current(tool: ModuleType) -> None:
    hint = "run python tools/draw_house.py"
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.picture(), hint
    assert tool.DESIGN.read_text(encoding="utf-8") == tool.design(), hint


def test_every_arrow_points_down(tool: ModuleType) -> None:
    row = {room: i for i, layer in enumerate(tool.layers()) for room in layer}
    assert all(row[start] < row[end] for start, end in tool.arrows())


def test_imports_by_name_point_down(tool: ModuleType) -> None:
    """The import contract does not see these."""
    row = {room: i for i, layer in enumerate(tool.layers()) for room in layer}
    for path in MODULES:
        own = path.relative_to(ROOT / "abelnet").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                name = ast.unparse(node.args[0]).strip("'")
                if name.startswith("abelnet."):
                    assert row[own] < row[name.split(".")[1]], f"{path} imports {name}"


def test_tests_mirror_the_package() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path.name in APART or path.parent.name == "browser":
            continue
        place = path.relative_to(ROOT / "tests").parent / path.name.removeprefix("test_")
        module = ROOT / "abelnet" / place
        assert module.is_file() or module.with_suffix("").is_dir(), f"{path} mirrors no {module}"


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES])
def test_no_module_reaches_for_private_names(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if alias.name.startswith("_") and alias.name != "__version__"]
            assert not names, f"line {node.lineno} imports {names}"
        private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if private and ast.unparse(node) != "os._exit":
            assert node.attr in own, f"line {node.lineno} reaches for {ast.unparse(node)}"


def test_importing_the_package_imports_little() -> None:
    script = "import sys, abelnet; print([name for name in ('torch', 'scipy', 'sympy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    script = script.replace("import sys, abelnet", "import sys; from abelnet import glow, save").replace(
        "'torch', ", ""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_there() -> None:
    import abelnet

    for name in abelnet.__all__:
        assert getattr(abelnet, name) is not None
    assert set(abelnet.__all__) <= set(dir(abelnet))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = abelnet.Nothing
