r"""Models on the Hugging Face Hub, with a model card; requires the extra ``abelnet[hub]``.

A repository holds one ``model.safetensors`` as :func:`abelnet.save` writes it, with the configuration in its metadata.
``config.json`` is a copy for people and for the Hub; it is never read. Nothing is pickled.
"""

from __future__ import annotations

__all__ = ["HubModel", "from_pretrained", "push_to_hub", "save_pretrained"]

import json
from collections.abc import Mapping
from functools import singledispatch
from pathlib import Path
from typing import Any

from safetensors import safe_open

from abelnet.config import Configurable
from abelnet.discovery import LawRegressor
from abelnet.discovery.formula import formula
from abelnet.errors import AbelnetError, needs_extra
from abelnet.files import write_json
from abelnet.operation import Operation
from abelnet.saving import FILE_NAME, load, save

with needs_extra("hub", "abelnet.integrations.hub"):
    from huggingface_hub import ModelCard, ModelCardData, ModelHubMixin, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

_LIBRARY = "abelnet"
_TAGS = ("permutation-invariant", "set-learning", "commutative-monoid")
# A card shows the formulas of at most so many dimensions.
_MOST_DIMENSIONS = 8


class HubModel(ModelHubMixin, library_name=_LIBRARY):
    """Operation, estimator or layer with the methods of ``huggingface_hub``: save, push and load.

    Arguments:
        model: What :func:`abelnet.save` can save.
        fitted_on: What the model was fitted to, for the model card.

    Example:
        >>> import tempfile, torch
        >>> from abelnet import AbelianGroup, Generator
        >>> norm = AbelianGroup(Generator(1, "positive power", [2.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = HubModel(norm).save_pretrained(folder)
        ...     again = HubModel.from_pretrained(folder).model
        >>> again(torch.tensor([3.0]), torch.tensor([4.0])).item()
        5.0
    """

    def __init__(self, model: Configurable, fitted_on: str = "") -> None:
        self.model, self.fitted_on = model, fitted_on

    def _save_pretrained(self, save_directory: Path) -> None:
        path = save(self.model, save_directory)
        with safe_open(path, framework="pt") as file:
            write_json(save_directory / "config.json", json.loads(file.metadata()[_LIBRARY]))

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        classes: Mapping[str, type[Configurable]] | None = None,
        **options: Any,
    ) -> HubModel:
        """Loads a model from a folder, or from a repository of the Hub such as ``"user/name"``.

        Arguments:
            pretrained_model_name_or_path: Folder or repository.
            classes: Your own classes by name, as for :func:`abelnet.load`.
            options: Options of ``huggingface_hub.hf_hub_download``, such as ``revision``, ``token`` and
                ``local_files_only``.
        """
        folder = Path(pretrained_model_name_or_path)
        if folder.is_dir():
            return cls(load(folder, classes=classes))
        try:
            found = hf_hub_download(str(pretrained_model_name_or_path), FILE_NAME, library_name=_LIBRARY, **options)
        except (HfHubHTTPError, OfflineModeIsEnabled, OSError, ValueError) as error:
            raise _unreachable("from_pretrained", f"a folder or a repository with {FILE_NAME}", error) from None
        # The cache links a name to a file of its own.
        return cls(load(Path(found).resolve(), classes=classes))

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Writes the model to a repository of the Hub, which is created if needed.

        Arguments:
            repo_id: Repository, such as ``"user/name"``.
            options: Options of ``huggingface_hub.ModelHubMixin.push_to_hub``, such as ``private`` and ``token``.

        Returns:
            Address of the commit.
        """
        try:
            return str(super().push_to_hub(repo_id, **options))
        except (HfHubHTTPError, OfflineModeIsEnabled, OSError) as error:
            raise _unreachable("push_to_hub", "a repository that can be written to", error) from None

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """Returns the model card: what the model computes, what it was fitted to, and how it is loaded."""
        name = type(self.model).__name__
        data = ModelCardData(library_name=_LIBRARY, tags=[_LIBRARY, name, *_TAGS])
        fitted = f"\n## Fitted to\n\n{self.fitted_on}\n" if self.fitted_on else ""
        return ModelCard(
            f"---\n{data.to_yaml()}\n---\n\n# {name}\n\n{_describe(self.model)}\n{fitted}\n{_HOW_TO_LOAD}",
            ignore_metadata_errors=False,
        )


_HOW_TO_LOAD = """## Load

```python
from abelnet.integrations.hub import from_pretrained  # pip install "abelnet[hub]"

model = from_pretrained("user/name")  # this repository, or a folder with its files
```

`model.safetensors` holds the parameters and, in its metadata, the configuration; `config.json` is a copy of the latter
that is never read. Nothing is pickled, and loading runs no code from the file.
"""


def save_pretrained(model: Configurable, folder: str | Path, *, fitted_on: str = "") -> None:
    """Saves a model to a folder with its model card, as it is pushed to the Hub.

    Arguments:
        model: What :func:`abelnet.save` can save.
        folder: Output folder; a ``README.md`` in it is kept.
        fitted_on: What the model was fitted to, for the model card.
    """
    HubModel(model, fitted_on).save_pretrained(folder)


def push_to_hub(model: Configurable, repo_id: str, *, fitted_on: str = "", **options: Any) -> str:
    """Pushes a model to a repository of the Hub: see :meth:`HubModel.push_to_hub`."""
    return HubModel(model, fitted_on).push_to_hub(repo_id, **options)


def from_pretrained(name: str | Path, **options: Any) -> Any:
    """Loads a model from a folder or from the Hub: see :meth:`HubModel.from_pretrained`."""
    return HubModel.from_pretrained(name, **options).model


@singledispatch
def _describe(model: Configurable) -> str:
    """Returns what a model computes, as Markdown."""
    return f"```text\n{model}\n```\n"


@_describe.register
def _(model: Operation) -> str:
    laws = (
        [formula(model, i) for i in range(min(model.dim, _MOST_DIMENSIONS))] if model.bijection.is_elementwise else []
    )
    lines = laws[:1] if len(set(laws)) == 1 else [f"{i + 1}: {law}" for i, law in enumerate(laws)]
    text = "x∘y = φ⁻¹(φ(x) * φ(y)), a commutative and associative operation"
    return "\n".join(
        (
            f"A learned operation on vectors of {model.dim} dimensions: {text}.",
            "",
            "```text",
            *(lines or [str(model)]),
            "```",
            "",
        )
    )


@_describe.register
def _(model: LawRegressor) -> str:
    return "\n".join(f"```text\n{law.summary()}\n```\n" for law in model.laws_)


def _unreachable(method: str, expected: str, error: Exception) -> AbelnetError:
    reason = str(error).strip().partition("\n")[0]
    return AbelnetError(f"{method}: expected {expected}, got: {reason[:200] or type(error).__name__}")
