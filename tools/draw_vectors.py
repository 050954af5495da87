"""Learns each law on vectors of the tests, and writes the gallery of docs/vectors.md with a plot for each."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from abelnet import ExtrapolationWarning, LawRegressor

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from vector_laws import LAWS, WIDER, VectorLaw, draw  # noqa: E402

PAGE, FOLDER = ROOT / "docs" / "vectors.md", ROOT / "docs" / "vectors"
START, END = "<!-- gallery -->\n", "<!-- end of gallery -->\n"
_EXAMPLES, _SHOWN, _POINTS = 300, 3, 60


def main() -> None:
    warnings.simplefilter("ignore", ExtrapolationWarning)
    FOLDER.mkdir(exist_ok=True)
    parts = [section(name, law) for name, law in (LAWS | WIDER).items()]
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    PAGE.write_text(before + START + "\n".join(parts) + END + rest.split(END)[1], encoding="utf-8")
    print(PAGE)


def section(name: str, law: VectorLaw) -> str:
    """Returns the section of a law, and draws its plot."""
    sets, target = draw(law, _EXAMPLES, seed=0)
    model = LawRegressor(polish=False).fit(sets, target, names=law.names)
    file = FOLDER / f"{name.replace(' ', '_').lower()}.png"
    plot(model, law, file)
    lines = [f"### {name[0].upper()}{name[1:]}", "", *table(law, sets[0], target[0]), ""]
    for block, one in zip(model.blocks_, model.laws_, strict=True):
        own = ", ".join(law.names[i] for i in block)
        if len(block) == 1:
            lines += [f"- {own}: `{one.formula}`"]
        else:
            lines += [f"- adds up: {', '.join(f'`{text}`' for text in one.invariants)}", f"- result: `{one.formula}`"]
            lines += [f"- in words: {one.words}"]
    lines += ["", f"![{name}](vectors/{file.name})", ""]
    return "\n".join(lines)


def table(law: VectorLaw, elements: np.ndarray, result: np.ndarray) -> list[str]:
    """Returns one example as a Markdown table."""
    head = ["", *law.names]
    rows = [["element", *(f"{x:.4g}" for x in one)] for one in elements[:_SHOWN]]
    rows += [["…", *[""] * len(law.names)]] if len(elements) > _SHOWN else []
    rows += [["**result**", *(f"**{x:.4g}**" for x in result)]]
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def plot(model: LawRegressor, law: VectorLaw, file: Path) -> None:
    """Draws results of the learned law against the true ones, at the sizes it was learned from and at larger ones."""
    figure = Figure(figsize=(2.6 * len(law.names), 2.5), layout="constrained")
    axes = figure.subplots(1, len(law.names), squeeze=False)[0]
    for sizes, label in (((2, 4), "sizes 2–4"), ((10, 12), "sizes 10–12")):
        sets, target = draw(law, _POINTS, seed=1, sizes=sizes)
        found = model.predict(sets)
        for i, name in enumerate(law.names):
            axes[i].plot(target[:, i], found[:, i], ".", markersize=4, label=label)
            axes[i].set_title(name)
            axes[i].set(xlabel="true")
            axes[i].tick_params(labelsize=7)
    axes[0].set(ylabel="learned")
    axes[0].legend(fontsize=7)
    figure.savefig(file, dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()
