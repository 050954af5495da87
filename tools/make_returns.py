"""Writes the sample table examples/returns.csv:

python tools/make_returns.py
"""

from __future__ import annotations

from pathlib import Path

from abelnet.experiments.returns import write_returns

if __name__ == "__main__":
    path = Path(__file__).parents[1] / "examples" / "returns.csv"
    write_returns(path)
    print(path)
