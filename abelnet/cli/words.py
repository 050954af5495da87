"""The commands ``abelnet words ...``: arguments only; every command is one call into the library."""

from __future__ import annotations

__all__ = ["app"]

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from abelnet.words.evaluation import SETTINGS, Evaluation
from abelnet.words.evaluation import evaluate as run
from abelnet.words.models import named_model
from abelnet.words.questions import Section, bats_questions, google_questions
from abelnet.words.vectors import WordVectors, cache_folder

app = typer.Typer(help="Word vectors and analogies.", no_args_is_help=True, rich_markup_mode=None)
console = Console()

_Vectors = Annotated[
    Path | None,
    typer.Option("--vectors", help="word2vec .bin or .txt, GloVe .txt, .gz of these, .safetensors; else embedded."),
]
_Limit = Annotated[int | None, typer.Option(min=1, help="Read the first so many words only.")]
_Lower = Annotated[bool, typer.Option("--lower", help="Put the vocabulary in lower case.")]
_Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep a copy that loads at once the next time.")]


def _load(path: Path | None, limit: int | None, lower: bool, cache: bool) -> WordVectors:
    if path is None:
        return WordVectors.default(limit)
    with console.status(f"reading {path}", spinner="line"):
        return WordVectors.load(path, limit=limit, lower=lower, cache=cache_folder() if cache else None)


@app.command()
def evaluate(
    vectors: _Vectors = None,
    questions: Annotated[str, typer.Option(help="google, a file in its layout, or the folder of BATS.")] = "google",
    json: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV file to write.")] = None,
    case: Annotated[str, typer.Option(help="How to look up words: auto, keep, lower or fold.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Fixes the split of BATS, whose test part is asked.")] = 0,
    model: Annotated[
        list[str] | None, typer.Option(help="wv (b - a + c), agn (the trained one), or a file; may be repeated.")
    ] = None,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Answer analogy questions a : b = c : ? over the whole vocabulary, by b - a + c or trained models."""
    words = _load(vectors, limit, lower, cache)
    if Path(questions).is_dir():
        asked = bats_questions(words, questions, seed=seed, case=case).test
    else:
        asked = google_questions(words, None if questions == "google" else questions, case=case)
    models = {name: named_model(name, words.dim) for name in model or ["wv"]}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("answering", total=1.0)
        result = run(words, asked, models, on_progress=lambda part: progress.update(task, completed=part))
    console.print(str(words.report), highlight=False, markup=False, soft_wrap=True)
    _print_table(result)
    for path, write in ((json, result.write_json), (csv, result.write_csv)):
        if path is not None:
            write(path)
            console.print(f"written: {path}", highlight=False, soft_wrap=True)


def _print_table(result: Evaluation) -> None:
    sections: dict[str, Section] = {section.name: section for section in result.questions.sections}
    table = Table(title=f"{result.questions.title}: right answers", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    headings = ["known", "num"]
    for setting in SETTINGS:
        headings += [f"{setting.partition('_')[0]} {model} {what}" for model in result.models for what in ("", "%")]
    for heading in headings:
        table.add_column(heading.strip(), justify="right")
    for row in result.rows():
        section = sections.get(row.name)
        cells = [row.name, f"{section.used}/{section.total}" if section else "", str(row.questions)]
        for setting in SETTINGS:
            for model in result.models:
                cells += [str(row.correct[setting][model]), f"{row.percent(setting, model):.1f}"]
        table.add_row(*cells, end_section=row.name == "Overall")
    Console(width=None if console.is_terminal else 120).print(table, highlight=False)
    console.print("all: every word is a candidate; excluding: all but a, b and c.", highlight=False)


@app.command()
def ask(
    words: Annotated[list[str], typer.Argument(help="b a c, for a : b = c : ?; or one word, for its neighbours.")],
    vectors: _Vectors = None,
    model: Annotated[str, typer.Option(help="wv (b - a + c), agn (the trained one), or a file of a model.")] = "wv",
    topn: Annotated[int, typer.Option(min=1, help="How many words to show.")] = 10,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Show the nearest words: 'ask king man woman' is king - man + woman, 'ask king' the neighbours of king."""
    if model != "wv" and len(words) != 3:
        raise typer.BadParameter("expected three words to go with it", param_hint="--model")
    if len(words) not in (1, 3):
        raise typer.BadParameter(f"expected one word or three, got {len(words)}", param_hint="WORDS")
    known = _load(vectors, limit, lower, cache)
    if known.is_lower_case:
        words = [word.lower() for word in words]
    if model == "wv":
        found = known.most_similar([words[0], *words[2:]], words[1:2], topn=topn)
    else:
        b, a, c = known.units(torch.tensor([known.index(word) for word in words]))
        with torch.no_grad():
            given = named_model(model, known.dim)(a, b, c)
        near = known.most_similar([given], topn=topn + 3)
        found = [(word, cosine) for word, cosine in near if word not in words][:topn]
    table = Table(
        title=" ".join(words[:1] if len(words) == 1 else [words[0], "−", words[1], "+", words[2]]), box=box.SIMPLE
    )
    table.add_column("word")
    table.add_column("cosine", justify="right")
    for word, cosine in found:
        table.add_row(word, f"{cosine:.4f}")
    console.print(table, highlight=False, markup=False)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="Vectors to read.")],
    target: Annotated[Path, typer.Argument(help="File to write: .bin, .txt, .vec, .gz of these, or .safetensors.")],
    limit: _Limit = None,
    lower: _Lower = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at repeated and undecodable words.")] = False,
    quantise: Annotated[bool, typer.Option("--quantise", help="int8 safetensors, a quarter of the size.")] = False,
    normalise: Annotated[bool, typer.Option("--normalise", help="Give every vector the norm 1.")] = False,
) -> None:
    """Write vectors in another format."""
    with console.status(f"reading {source}", spinner="line") as status:
        words = WordVectors.load(source, limit=limit, lower=lower, strict=strict)
        status.update(f"writing {target}")
        (words.normalised() if normalise else words).save(target, quantise=quantise)
    console.print(str(words.report), highlight=False, markup=False, soft_wrap=True)
    console.print(f"written: {target}", highlight=False, soft_wrap=True)
