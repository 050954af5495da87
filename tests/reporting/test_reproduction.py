"""Both experiments as ``abelnet reproduce`` shows them."""

from __future__ import annotations

import io

from rich.console import Console

from abelnet.experiments.reproduction import Reproduction
from abelnet.experiments.synthetic.data import learn
from abelnet.reporting.reproduction import reproduction_report
from abelnet.reporting.terminal import print_table


def test_report() -> None:
    counts = {"Overall": 3, "family": 3}
    table = {
        "title": "Google pairs test",
        "sections": ["family"],
        "questions": dict.fromkeys(counts, 4),
        "correct": {"all_candidates": counts, "excluding_abc": counts},
    }
    analogies = {"rows": [{"model": "wv", "seed": 0, "tables": [table]}]}
    report = reproduction_report(Reproduction(0, 10, {"cbrt": learn("cbrt")}, analogies))
    (section,) = report.sections
    laws, *accuracies = section.tables
    assert [cell.text for cell in laws.rows[0][:2]] == ["cbrt(x³ + y³)", "cbrt(x^3 + y^3)"]
    assert [cell.text for cell in laws.rows[0][3:6:2]] == ["8.4e-02", "2.3e-01"]  # the paper's
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    print_table(laws, terminal)
    assert isinstance(terminal.file, io.StringIO)
    assert "cbrt(x^3 + y^3)" in terminal.file.getvalue()  # not folded: it fits a terminal of the usual width
    assert [[cell.text for row in one.rows for cell in row] for one in accuracies] == [["Overall", "4", "75.0"]] * 2
    assert "10 epochs" in report.notes[0]
