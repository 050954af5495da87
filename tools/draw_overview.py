"""Draws the picture of the README, in light and in dark: what an operation is, and its error by multiset size.

The errors are those of the table of ``abelnet universality`` in docs/theory.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
THEORY = ROOT / "docs" / "theory.md"
FILES = {"light": ROOT / "docs" / "overview.svg", "dark": ROOT / "docs" / "overview-dark.svg"}
WIDTH, HEIGHT = 860, 300
SIZES = (4, 10, 50)
# The model of ours with fewer parameters than DeepSets, and DeepSets, in two dimensions.
MODELS = {"abelnet (AGN)": "AGN 4 × 32", "DeepSets": "DeepSets"}
DESCRIPTION = (
    "Left: elements x and y are mapped by an invertible network φ, combined by a known law such as a sum, and mapped "
    "back by the inverse. Right: test error by multiset size on a logarithmic scale, learned from sizes 2 to 4; that "
    "of DeepSets is smaller at size 4 and grows faster, so that it is larger at 10 and at 50."
)


class Theme(NamedTuple):
    """Colors of the picture."""

    text: str
    faint: str
    box: str
    band: str
    ours: str
    other: str


THEMES = {
    "light": Theme("#1f2328", "#59636e", "#eaf2fb", "#eef1f4", "#0b5cad", "#b3410a"),
    "dark": Theme("#f0f6fc", "#9198a1", "#16304f", "#1c232c", "#6cb2ff", "#ff9d66"),
}


def errors() -> dict[str, tuple[float, ...]]:
    """Returns the error of each model at each size."""
    text = THEORY.read_text(encoding="utf-8")
    found = {}
    for name, row in MODELS.items():
        match = re.search(rf"^\| \$\\mathbb{{R}}\^2\$ \| {row} \| \d+ \|(.*)\|$", text, re.MULTILINE)
        assert match is not None, f"docs/theory.md has no row {row}"
        found[name] = tuple(float(cell) for cell in match.group(1).split("|"))
    return found


def picture(theme: Theme) -> str:
    """Returns the picture as SVG."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" aria-label="{DESCRIPTION}">',
            f"<style>text{{font:15px system-ui,-apple-system,'Segoe UI',sans-serif;fill:{theme.text}}}"
            f".math{{font:italic 19px Georgia,'Times New Roman',serif}}.faint{{fill:{theme.faint};font-size:13px}}"
            ".middle{text-anchor:middle}.end{text-anchor:end}</style>",
            *diagram(theme),
            *chart(theme),
            "</svg>\n",
        ]
    )


def diagram(theme: Theme) -> list[str]:
    """Returns the left half: both ways from a pair to its result."""
    left, right, top, bottom = 85, 285, 85, 205
    lines = [text(10, 22, "Any set size, any order, by construction"), *box(theme, left, top, "x, y")]
    lines += [*box(theme, right, top, "x ∘ y"), *box(theme, left, bottom, "φ(x), φ(y)")]
    lines += [*box(theme, right, bottom, "φ(x) ∗ φ(y)")]
    lines += [arrow(theme, left + 62, top, right - 70, top), text((left + right) / 2 - 4, top - 10, "∘", "math middle")]
    lines += [arrow(theme, left, top + 22, left, bottom - 30), text(left - 12, 150, "φ", "math end")]
    lines += [arrow(theme, right, bottom - 22, right, top + 30), text(right + 12, 150, "φ⁻¹", "math")]
    lines += [arrow(theme, left + 62, bottom, right - 70, bottom)]
    lines += [text((left + right) / 2 - 4, bottom - 10, "∗", "math middle")]
    lines += [text((left + right) / 2, 250, "φ: a trainable invertible network", "faint middle")]
    lines += [text((left + right) / 2, 270, "∗: a sum, product, maximum, mean, …", "faint middle")]
    return lines


def box(theme: Theme, x: float, y: float, label: str) -> list[str]:
    return [
        f'<rect x="{x - 62:g}" y="{y - 22:g}" width="124" height="44" rx="8" fill="{theme.box}"/>',
        text(x, y + 6, label, "math middle"),
    ]


def arrow(theme: Theme, x0: float, y0: float, x1: float, y1: float) -> str:
    dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
    ends = f"{x1 + 8 * dx:g} {y1 + 8 * dy:g}L{x1 - 5 * dy:g} {y1 + 5 * dx:g}L{x1 + 5 * dy:g} {y1 - 5 * dx:g}z"
    return (
        f'<path d="M{x0:g} {y0:g}L{x1:g} {y1:g}" stroke="{theme.faint}" stroke-width="1.5"/>'
        f'<path d="M{ends}" fill="{theme.faint}"/>'
    )


def chart(theme: Theme) -> list[str]:
    """Returns the right half: error by size, on two logarithmic axes."""
    left, right, top, bottom = 475, 700, 70, 240
    least, most, first, last = 0.03, 10.0, 2.0, 60.0

    def across(size: float) -> float:
        return left + (right - left) * math.log(size / first) / math.log(last / first)

    def up(error: float) -> float:
        return bottom - (bottom - top) * math.log(error / least) / math.log(most / least)

    lines = [text(430, 22, "Error on sets larger than those of training (RMSE)")]
    lines += [
        f'<rect x="{left}" y="{top}" width="{across(4) - left:.1f}" height="{bottom - top}" fill="{theme.band}"/>'
    ]
    lines += [text(left, top - 10, "training sizes", "faint")]
    for error in (0.1, 1.0, 10.0):
        lines += [f'<path d="M{left} {up(error):.1f}H{right}" stroke="{theme.faint}" stroke-opacity=".3"/>']
        lines += [text(left - 8, up(error) + 5, f"{error:g}", "faint end")]
    for size in (2, *SIZES):
        lines += [text(across(size), bottom + 20, f"{size}", "faint middle")]
    lines += [f'<path d="M{left} {bottom}H{right}" stroke="{theme.faint}"/>']
    lines += [text((left + right) / 2, bottom + 42, "elements in a set", "faint middle")]
    for (name, values), color, dash in zip(errors().items(), (theme.ours, theme.other), ("", "7 4"), strict=True):
        points = [(across(size), up(value)) for size, value in zip(SIZES, values, strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        lines += [f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2.5" stroke-dasharray="{dash}"/>']
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>' for x, y in points]
        x, y = points[-1]
        lines += [f'<text x="{x + 12:.1f}" y="{y + 5:.1f}" style="fill:{color}">{name}</text>']
    return lines


def text(x: float, y: float, label: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{label}</text>'


def pages() -> Iterator[tuple[Path, str]]:
    """Yields both files and their contents."""
    for name, file in FILES.items():
        yield file, picture(THEMES[name])


def main() -> None:
    """Writes both files."""
    for file, drawing in pages():
        file.write_text(drawing, encoding="utf-8")
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
