"""Draws accuracy against the number of example pairs, for docs/analogies.md.

Each result is a file written by `abelnet words evaluate --method … --shots K --json FILE`; those of the same number of
pairs are merged:

    python tools/draw_shots.py 1=one.json 5=five.json 5=five_agn.json 40=all.json [--out docs/shots.png]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from abelnet.reporting.plots import Panel, draw
from abelnet.words.shots import QUERY_SETTINGS

TITLES = dict(zip(QUERY_SETTINGS, ("all words are candidates", "all except the query"), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="number=file")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "shots.png")
    arguments = parser.parse_args()
    curves: dict[str, dict[str, dict[int, float]]] = {setting: defaultdict(dict) for setting in QUERY_SETTINGS}
    for argument in arguments.results:
        count, _, file = argument.partition("=")
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        for setting, curve in curves.items():
            for model in content["models"]:
                curve[model][int(count)] = content[setting]["Overall"][f"{model}_percent"]
    panels = [
        Panel(title, lambda axes, setting=setting: plot(axes, curves[setting])) for setting, title in TITLES.items()
    ]
    arguments.out.write_bytes(draw({"shots": panels})["shots"])
    print(arguments.out)


def plot(axes, curve) -> None:  # type: ignore[no-untyped-def]
    """Draws one curve per method: those of plain vectors dashed, those of the group solid and bold."""
    for name, points in sorted(curve.items()):
        counts = sorted(points)
        style = {"linewidth": 2.2} if name.endswith(" agn") else {"linewidth": 1.0, "linestyle": "--"}
        axes.plot(counts, [points[count] for count in counts], marker=".", label=name, **style)
    axes.set(xscale="log", xlabel="example pairs", ylabel="accuracy (%)")
    axes.set_xticks(sorted({count for points in curve.values() for count in points}))
    axes.minorticks_off()
    axes.get_xaxis().set_major_formatter("{x:.0f}")
    axes.legend(fontsize=6, ncols=2)


if __name__ == "__main__":
    main()
