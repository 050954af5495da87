"""Sample table: monthly returns of accounts, and the total return of each, as a bank would report them.

``examples/returns.csv`` is this table, with the default arguments.
"""

from __future__ import annotations

__all__ = ["RETURNS", "write_returns"]

import csv
import io
from pathlib import Path

import numpy as np

from abelnet.engines.columns import Columns
from abelnet.files import write_text

RETURNS = Columns(("return",), "account", ("total",))
"""Columns of the table: one row for each month of an account; its total return stands on each of its rows."""


def write_returns(path: str | Path, *, accounts: int = 80, seed: int = 0) -> None:
    r"""Writes monthly returns :math:`r_i`, and the total return :math:`\prod (1 + r_i) - 1` of each account, as CSV.

    Accounts are open for 2 to 12 months. Monthly returns are normally distributed, with a mean of 0.6 % and a standard
    deviation of 4 %. Returns are rounded to 0.01 %, and totals to 0.0001 %.

    Arguments:
        path: File to write.
        accounts: Number of accounts.
        seed: Random seed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_returns(Path(folder, "returns.csv"))
        ...     print(Path(folder, "returns.csv").read_text()[:48])
        account,return,total
        ...
    """
    generator = np.random.default_rng(seed)
    lines = io.StringIO()
    rows = csv.writer(lines, lineterminator="\n")
    rows.writerow([RETURNS.set, *RETURNS.numbers])
    for account in range(accounts):
        months = generator.normal(0.006, 0.04, generator.integers(2, 13)).round(4)
        total = f"{np.prod(1 + months) - 1:.6f}"
        rows.writerows([f"A{1001 + account}", f"{month:.4f}", total] for month in months)
    write_text(Path(path), lines.getvalue())
