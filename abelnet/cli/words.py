"""Commands ``abelnet words ...``: arguments only."""

from __future__ import annotations

__all__ = ["app"]

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import examples

if TYPE_CHECKING:
    from abelnet.words.vectors import WordVectors

app = typer.Typer(
    help="Word vectors and analogies.",
    epilog=examples("abelnet words ask king man woman"),
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Vectors = Annotated[
    Path | None,
    typer.Option("--vectors", help="word2vec .bin or .txt, GloVe .txt, .gz of these, .safetensors; else bundled."),
]
_Limit = Annotated[int | None, typer.Option(min=1, help="Maximum number of words, most frequent first.")]
_Lower = Annotated[bool, typer.Option("--lower", help="Lowercase the vocabulary.")]
_Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Cache a copy that loads instantly the next time.")]


def _load(path: Path | None, limit: int | None, lower: bool, cache: bool) -> WordVectors:
    from abelnet.words.vectors import WordVectors, cache_folder

    if path is None:
        return WordVectors.default(limit)
    with terminal.status(f"reading {path}"):
        return WordVectors.load(path, limit=limit, lower=lower, cache=cache_folder() if cache else None)


@app.command(
    epilog=examples(
        "abelnet words evaluate --model wv --model agn",
        "abelnet words evaluate --vectors GoogleNews.bin --questions BATS_3.0 --json results.json",
    )
)
def evaluate(
    vectors: _Vectors = None,
    questions: Annotated[str, typer.Option(help="google, a file in its format, or the BATS folder.")] = "google",
    json: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV file to write.")] = None,
    case: Annotated[str, typer.Option(help="How to look up words: auto, keep, lower or fold.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the BATS split, whose test part is used.")] = 0,
    model: Annotated[
        list[str] | None, typer.Option(help="wv (b - a + c), agn (bundled, trained), or a model file; may be repeated.")
    ] = None,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Measure accuracy on analogy questions.

    Answers questions a : b = c : ? over the whole vocabulary, by b - a + c or by trained models.
    """
    from abelnet.reporting.words import evaluation_table
    from abelnet.words import evaluation
    from abelnet.words.models import named_model
    from abelnet.words.questions import named_questions

    words = _load(vectors, limit, lower, cache)
    asked = named_questions(words, questions, seed=seed, case=case)
    models = {name: named_model(name, words.dim) for name in model or ["wv"]}
    with terminal.progress("answering") as on_progress:
        result = evaluation.evaluate(words, asked, models, on_progress=on_progress)
    outputs = [
        (path, write) for path, write in ((json, result.write_json), (csv, result.write_csv)) if path is not None
    ]
    for path, write in outputs:
        write(path)
    terminal.say(str(words.report))
    terminal.show_table(evaluation_table(result))
    terminal.say_written([path for path, _ in outputs])


@app.command(epilog=examples("abelnet words ask king man woman", "abelnet words ask king --topn 5"))
def ask(
    words: Annotated[list[str], typer.Argument(help="b a c, for a : b = c : ?; or one word, for its neighbors.")],
    vectors: _Vectors = None,
    model: Annotated[str, typer.Option(help="wv (b - a + c), agn (bundled, trained), or a model file.")] = "wv",
    topn: Annotated[int, typer.Option(min=1, help="Number of words to show.")] = 10,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Answer one analogy, or show a word's neighbors.

    'ask king man woman' is king - man + woman; 'ask king' shows the neighbors of king.
    """
    from abelnet.reporting.words import answer_table
    from abelnet.words import asking

    found = asking.ask(_load(vectors, limit, lower, cache), words, model, topn=topn)
    terminal.show_table(answer_table(words, found))


@app.command(epilog=examples("abelnet words convert GoogleNews.bin google.safetensors --quantise"))
def convert(
    source: Annotated[Path, typer.Argument(help="Vectors to read.")],
    target: Annotated[Path, typer.Argument(help="File to write: .bin, .txt, .vec, .gz of these, or .safetensors.")],
    limit: _Limit = None,
    lower: _Lower = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on repeated and undecodable words.")] = False,
    quantise: Annotated[bool, typer.Option("--quantise", help="int8 safetensors, a quarter of the size.")] = False,
    normalise: Annotated[bool, typer.Option("--normalise", help="Normalize every vector to norm 1.")] = False,
) -> None:
    """Convert vectors to another format."""
    from abelnet.words.vectors import WordVectors

    with terminal.status(f"reading {source}") as update:
        words = WordVectors.load(source, limit=limit, lower=lower, strict=strict)
        update(f"writing {target}")
        (words.normalised() if normalise else words).save(target, quantise=quantise)
    terminal.say(str(words.report))
    terminal.say_written([target])
