"""Draws the package layout: the folder listing and the import graph of abelnet/, for docs/design.md.

    python tools/draw_house.py

The listing has each module with the first line of its docstring, between two markers in docs/design.md. The picture,
docs/house.svg, has a box for each top-level module or subpackage, in the layers of the import-linter contract in
pyproject.toml, and an arrow to each one that it imports; arrows that follow from others are omitted.
tests/test_house.py checks that both are up to date.
"""

from __future__ import annotations

import ast
import html
import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "abelnet"
PICTURE = ROOT / "docs" / "house.svg"
DESIGN = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- listing: made by tools/draw_house.py -->", "<!-- end of listing -->"
WIDTH, ROW, BOX_HEIGHT, CHARACTER = 760, 62, 30, 8.4


def layers() -> list[list[str]]:
    """Returns modules by layer, the highest first, as in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def arrows() -> set[tuple[str, str]]:
    """Returns which module imports which, without arrows that follow from others."""
    graph = grimp.build_graph("abelnet", exclude_type_checking_imports=True, cache_dir=None)
    rooms = {room for layer in layers() for room in layer}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        for target in graph.find_modules_directly_imported_by(module):
            start, end = (f"{name}.".split(".")[1] for name in (module, target))
            if start in rooms and end in rooms - {start}:
                found[start].add(end)

    def reached(room: str) -> set[str]:
        return {room}.union(*(reached(end) for end in found[room]))

    return {
        (start, end)
        for start, ends in found.items()
        for end in ends
        if not any(end in reached(other) for other in ends - {end})
    }


def picture() -> str:
    """Returns the import graph as SVG."""
    places: dict[str, tuple[float, float, float]] = {}
    for row, layer in enumerate(layers()):
        widths = [CHARACTER * len(room) + 24 for room in layer]
        gap = 60.0
        x = (WIDTH - sum(widths) - gap * (len(layer) - 1)) / 2
        for room, width in zip(layer, widths, strict=True):
            places[room] = (x + width / 2, 24 + ROW * row + BOX_HEIGHT / 2, width)
            x += width + gap
    height = 24 + ROW * len(layers())
    lines = []
    for start, end in sorted(arrows()):
        (x0, y0, _), (x1, y1, _) = places[start], places[end]
        y0, y1 = y0 + BOX_HEIGHT / 2, y1 - BOX_HEIGHT / 2 - 5
        # Long arrows bend around the boxes in between.
        rows = round((y1 - y0) / ROW)
        side = (1 if hash_of(start, end) % 2 else -1) * (0 if rows < 1 else 70 + 30 * rows)
        lines.append(
            f'<path d="M{x0:.0f} {y0:.0f} C{x0 + side:.0f} {y0 + 20:.0f} {x1 + side:.0f} {y1 - 20:.0f} '
            f'{x1:.0f} {y1:.0f}" marker-end="url(#tip)"><title>{start} imports {end}</title></path>'
        )
    boxes = []
    for room, (x, y, width) in places.items():
        title = html.escape(summary(PACKAGE / room))
        boxes.append(
            f'<g><title>{title}</title><rect x="{x - width / 2:.0f}" y="{y - BOX_HEIGHT / 2:.0f}" '
            f'width="{width:.0f}" height="{BOX_HEIGHT}" rx="6"/><text x="{x:.0f}" y="{y + 5:.0f}">{room}</text></g>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'role="img" aria-label="Which part of abelnet imports which; every arrow points down">',
            "<style>rect{fill:#eef3fa;stroke:#1f5fa8}text{font:14px ui-monospace,monospace;text-anchor:middle}"
            "path{fill:none;stroke:#888}</style>",
            f'<rect width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" style="fill:#888;stroke:none"/></marker></defs>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def hash_of(*names: str) -> int:
    """Returns a hash that is the same in every process."""
    return sum(ord(letter) for name in names for letter in name)


def listing() -> str:
    """Returns the modules of the package with the first lines of their docstrings."""
    return "\n".join(["```text", "abelnet/", *lines(PACKAGE, 1), "```"])


def lines(folder: Path, depth: int) -> list[str]:
    """Returns the lines of a folder and its subfolders."""
    found = []
    for path in entries(folder):
        name = "  " * depth + path.name + ("/" if path.is_dir() else "")
        found.append(f"{name:<26}{summary(path)}")
        if path.is_dir():
            found += lines(path, depth + 1)
    return found


def entries(folder: Path) -> list[Path]:
    """Returns modules and packages of a folder, modules first."""
    modules = [path for path in folder.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    packages = [path.parent for path in folder.glob("*/__init__.py")]
    return sorted(modules) + sorted(packages)


def summary(path: Path) -> str:
    """Returns the first line of the docstring of a module or package, without markup."""
    source = path / "__init__.py" if path.is_dir() else path if path.suffix else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or " "
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`]*)`|``([^`]*)``", r"\1\2", docstring.splitlines()[0])


def design() -> str:
    """Returns docs/design.md with the current listing."""
    before, _, rest = DESIGN.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{listing()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Writes the picture and the listing."""
    PICTURE.write_text(picture(), encoding="utf-8")
    DESIGN.write_text(design(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT), DESIGN.relative_to(ROOT))


if __name__ == "__main__":
    main()
