"""Commands ``abelnet words ...``: arguments only."""

from __future__ import annotations

__all__ = ["app"]

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abelnet.cli import terminal
from abelnet.cli.help import METHODS, completing, examples, listed

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
_Models = Annotated[
    list[str] | None,
    typer.Option(
        help="wv (b - a + c), agn (bundled, trained), or the folder of a model; may be repeated.",
        autocompletion=completing(("wv", "agn")),
    ),
]
_Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Cache a copy that loads instantly the next time.")]


def _load(path: Path | None, limit: int | None, lower: bool, cache: bool) -> WordVectors:
    with terminal.status(f"reading {'the bundled vectors' if path is None else path}"):
        from abelnet.words.vectors import WordVectors, cache_folder

        if path is None:
            return WordVectors.default(limit)
        return WordVectors.load(path, limit=limit, lower=lower, cache=cache_folder() if cache else None)


@app.command(
    epilog=examples(
        "abelnet words evaluate --model wv --model agn",
        "abelnet words evaluate --vectors GoogleNews.bin --questions BATS_3.0",
        "abelnet words evaluate --method spelled --model agn --shots 5",
    )
)
def evaluate(
    vectors: _Vectors = None,
    questions: Annotated[str, typer.Option(help="google, a file in its format, or the BATS folder.")] = "google",
    json: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV file to write.")] = None,
    case: Annotated[
        str,
        typer.Option(
            help="How to look up words: auto, keep, lower or fold.",
            autocompletion=completing(("auto", "keep", "lower", "fold")),
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the BATS split, whose test part is used.")] = 0,
    model: _Models = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Answer from several example pairs, by {listed(METHODS)}; may be repeated.",
            autocompletion=completing(METHODS),
        ),
    ] = None,
    shots: Annotated[
        str | None, typer.Option(help="Example pairs of each word, a number or all; spelled unless --method says.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="With several pairs: split (test pairs, from the others) or leave-one-out.",
            autocompletion=completing(("split", "leave-one-out")),
        ),
    ] = "split",
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Measure accuracy on analogy questions.

    Answers questions a : b = c : ? over the whole vocabulary, by b - a + c or by trained models; with --method or
    --shots, completes words from several example pairs of their relation.
    """
    words = _load(vectors, limit, lower, cache)
    from abelnet.reporting.words import evaluation_table
    from abelnet.words import evaluation
    from abelnet.words.methods import named_methods
    from abelnet.words.models import named_models
    from abelnet.words.questions import named_questions
    from abelnet.words.shots import evaluate_methods, named_pairs, parse_shots

    models = named_models(model or ["wv"], words.dim)
    with terminal.progress("answering") as on_progress:
        if method or shots is not None:
            pairs = named_pairs(words, questions, protocol=protocol, seed=seed, case=case)
            methods = named_methods(method or ["spelled"], models)
            count = parse_shots(shots or "all")
            result = evaluate_methods(words, *pairs, methods, shots=count, seed=seed, on_progress=on_progress)
        else:
            asked = named_questions(words, questions, seed=seed, case=case)
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
    model: Annotated[
        str,
        typer.Option(
            help="wv (b - a + c), agn (bundled, trained), or the folder of a model.",
            autocompletion=completing(("wv", "agn")),
        ),
    ] = "wv",
    topn: Annotated[int, typer.Option(min=1, help="Number of words to show.")] = 10,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Answer one analogy, or show a word's neighbors.

    'ask king man woman' is king - man + woman; 'ask king' shows the neighbors of king.
    """
    vocabulary = _load(vectors, limit, lower, cache)
    from abelnet.reporting.words import answer_table
    from abelnet.words import asking

    found = asking.ask(vocabulary, words, model, topn=topn)
    terminal.show_table(answer_table(words, found))


@app.command(
    epilog=examples(
        "abelnet words complete --pair france:paris --pair italy:rome germany",
        "abelnet words complete --relation currency germany --topn 3",
    )
)
def complete(
    words: Annotated[list[str], typer.Argument(help="Words to complete.")],
    pair: Annotated[list[str] | None, typer.Option(help="Example such as france:paris; may be repeated.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="File of examples, one pair of words per line.")] = None,
    relation: Annotated[str | None, typer.Option(help="Relation of a question set whose pairs are examples.")] = None,
    questions: Annotated[str, typer.Option(help="That set: google, or a file in its format.")] = "google",
    bats: Annotated[Path | None, typer.Option(help="That set: the BATS folder.")] = None,
    vectors: _Vectors = None,
    model: _Models = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"{listed(METHODS)}; may be repeated.", autocompletion=completing(METHODS)),
    ] = None,
    topn: Annotated[int, typer.Option(min=1, help="Number of answers to show.")] = 5,
    json: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Complete words from example pairs.

    From france:paris and italy:rome, germany becomes berlin: answers by plain vectors and by the trained group, ranked.
    """
    vocabulary = _load(vectors, limit, lower, cache)
    from abelnet.files import write_json
    from abelnet.reporting.words import completion_table
    from abelnet.words.completing import Examples, parse_pair, read_pairs, relation_pairs
    from abelnet.words.completing import complete as completed
    from abelnet.words.methods import named_methods
    from abelnet.words.models import named_models

    known = Examples.of(vocabulary, map(parse_pair, pair or []))
    if pairs is not None:
        known = known.joined(Examples.of(vocabulary, read_pairs(pairs), strict=False))
    if relation is not None:
        source = questions if bats is None else str(bats)
        known = known.joined(relation_pairs(vocabulary, relation, source))
    # The bundled model is for 100-d GloVe, and says so if it is asked for with other vectors.
    models = named_models(model or (["wv", "agn"] if vocabulary.dim == 100 else ["wv"]), vocabulary.dim)
    methods = named_methods(method or ["spelled"], models)
    with terminal.status("answering"):
        found = completed(vocabulary, known, words, methods, topn=topn)
    count, first = len(known.rows), ":".join(vocabulary.index_to_key[row] for row in known.rows[0].tolist())
    said = f"{count:,} example pairs, such as {first}" if count > 1 else f"1 example pair, {first}"
    terminal.say("; ".join((said, *known.notes)))
    for word, example in known.reversed_words(vocabulary, words).items():
        terminal.say(
            f"{word} is an answer here, as in {example}: pairs are completed from the first word to the second"
        )
    for completion in found:
        terminal.show_table(completion_table(completion))
    if json is not None:
        write_json(json, {completion.word: completion.answers for completion in found})
        terminal.say_written([json])


@app.command(
    epilog=examples(
        "abelnet words judge SAT-package-V3.txt --model wv --model agn",
        "abelnet words judge SemEval-2012 --model agn",
    )
)
def judge(
    path: Annotated[Path, typer.Argument(help="File of SAT questions, or folder of SemEval-2012 Task 2.")],
    vectors: _Vectors = None,
    model: _Models = None,
    case: Annotated[str, typer.Option(help="How to look up words: auto, keep, lower or fold.")] = "auto",
    json: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    limit: _Limit = None,
    lower: _Lower = False,
    cache: _Cache = True,
) -> None:
    """Measure models on given pairs: SAT questions or ratings.

    By the similarity of offsets: the accuracy of choosing the right pair (SAT), or the rank correlation with how
    typical people find each pair (SemEval-2012 Task 2).
    """
    from dataclasses import asdict

    from abelnet.files import write_json
    from abelnet.reporting.words import judged_table
    from abelnet.words import choices
    from abelnet.words.models import named_models

    words = _load(vectors, limit, lower, cache)
    models = named_models(model or ["wv"], words.dim)
    judged = choices.judge(words, path, models, case=case)
    if json is not None:
        write_json(json, [asdict(row) for row in judged])
    terminal.show_table(judged_table(judged))
    terminal.say_written([] if json is None else [json])


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
    with terminal.status(f"reading {source}") as update:
        from abelnet.words.vectors import WordVectors

        words = WordVectors.load(source, limit=limit, lower=lower, strict=strict)
        update(f"writing {target}")
        (words.normalised() if normalise else words).save(target, quantise=quantise)
    terminal.say(str(words.report))
    terminal.say_written([target])
