"""Command ``abelnet explore``: arguments only."""

from __future__ import annotations

__all__ = ["app"]

from typing import Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import examples

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog=examples("abelnet explore", "abelnet explore --port 9000 --no-browser"))
def explore(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any that is free.")] = 8230,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Open a local web page to learn laws and ask analogies.

    Paste a table and see its law, complete words from example pairs, and compare models on large multisets. The page is
    served to this machine alone, and needs no network. Ctrl-C ends it.
    """
    with terminal.status("loading"):
        from abelnet.explore.server import Explorer, open_page

    with Explorer(port) as explorer:
        terminal.say(f"serving {explorer.address} (Ctrl-C to stop)")
        if browser:
            open_page(explorer.address)
        explorer.serve_forever()
