"""Values that shells complete are those that the library knows."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from abelnet import cli
from abelnet.cli.help import completing
from abelnet.experiments.analogies.experiment import MODELS as ANALOGY_MODELS
from abelnet.experiments.graphs.data import TASKS as GRAPH_TASKS
from abelnet.experiments.graphs.models import FORMS
from abelnet.experiments.graphs.rivals import AGGREGATIONS as GRAPH_MODELS
from abelnet.experiments.sets.data import TASKS as SET_TASKS
from abelnet.experiments.sets.models import AGGREGATIONS as SET_MODELS
from abelnet.experiments.synthetic.comparison import MODELS
from abelnet.experiments.synthetic.data import OPERATIONS
from abelnet.sql import DIALECTS
from abelnet.words.methods import METHODS


@pytest.mark.parametrize(
    ("path", "option", "names"),
    [
        ("export", "dialect", DIALECTS),
        ("synthetic", "op", OPERATIONS),
        ("synthetic", "model", MODELS),
        ("certify", "truth", OPERATIONS),
        ("graphs", "task", GRAPH_TASKS),
        ("graphs", "form", FORMS),
        ("graphs", "model", GRAPH_MODELS),
        ("sets", "task", SET_TASKS),
        ("sets", "model", SET_MODELS),
        ("analogies run", "model", ANALOGY_MODELS),
        ("analogies several", "method", METHODS),
        ("words complete", "method", METHODS),
    ],
)
def test_names_of_options(path: str, option: str, names: Any) -> None:
    command: Any = typer.main.get_command(cli.app)
    for word in path.split():
        command = command.commands[word]
    context = command.make_context("abelnet", [], resilient_parsing=True)
    (parameter,) = (one for one in command.params if one.name == option)
    assert {item.value for item in parameter.shell_complete(context, "")} == set(names)


def test_completing() -> None:
    assert completing(("sum", "sum_plus_one", "cbrt"))("sum") == ["sum", "sum_plus_one"]
