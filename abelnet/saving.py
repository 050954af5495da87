"""Saving and loading: one ``model.safetensors`` per folder, whose metadata holds the configuration. No pickle.

The configuration is a tree: each object is stored as its class name and the arguments that rebuild it
(:class:`~abelnet.config.Configurable`), so this module depends on no concrete class. Formula and numbers are in one
file, written atomically, and cannot come apart.
"""

from __future__ import annotations

__all__ = ["FILE_NAME", "load", "save"]

import hashlib
import importlib
import json
import math
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from abelnet import legacy
from abelnet.config import Configurable, check_arguments
from abelnet.errors import AbelnetError
from abelnet.files import replacing

FILE_NAME = "model.safetensors"
FORMAT = 1
_METADATA, _CHECKSUM = "abelnet", "checksum"
# Limits far beyond any configuration that save writes.
_DEEPEST, _LONGEST, _MOST_NODES = 32, 1 << 24, 100_000
# Integers in the configuration of a module are at most this, or the number of elements of all tensors in the file.
_LEAST_LIMIT = 1024


def save(model: Configurable, folder: str | Path, *, half: bool = False) -> Path:
    """Saves an operation, an estimator or another configurable object to a folder.

    Arguments:
        model: The object.
        folder: Output folder, created if needed; ``model.safetensors`` in it is replaced atomically.
        half: Whether to store floating-point numbers in float16, at half the size of float32; they are loaded in their
            own dtype, rounded.

    Returns:
        Path of the file.

    Example:
        >>> import tempfile
        >>> from abelnet import AbelianGroup, Generator
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save(AbelianGroup(Generator(1, "power", [2.0])), folder)
        ...     load(folder)(torch.tensor([3.0]), torch.tensor([4.0])).item()
        5.0
    """
    if not isinstance(model, Configurable):
        raise AbelnetError(f"model: expected an object with config(), such as an operation, got {type(model).__name__}")
    modules: dict[str, nn.Module] = {}
    content: dict[str, Any] = {"format": FORMAT, "model": _encode(model, "", modules)}
    tensors = {prefix + name: x for prefix, one in modules.items() for name, x in one.state_dict().items()}
    content["frozen"] = [
        prefix + name
        for prefix, one in modules.items()
        for name, parameter in one.named_parameters()
        if not parameter.requires_grad
    ]
    if half:
        content["dtypes"] = {
            name: str(x.dtype).removeprefix("torch.") for name, x in tensors.items() if x.is_floating_point()
        }
        tensors = {name: x.half() if x.is_floating_point() else x for name, x in tensors.items()}
    # Cloned, since safetensors refuses tensors that share memory.
    tensors = {name: x.detach().cpu().clone(memory_format=torch.contiguous_format) for name, x in tensors.items()}
    text = json.dumps(content, allow_nan=False)
    path = Path(folder) / FILE_NAME
    with replacing(path) as temporary:
        save_file(tensors, temporary, {_METADATA: text, _CHECKSUM: checksum(text, tensors)})
    return path


def load(folder: str | Path, *, classes: Mapping[str, type[Configurable]] | None = None) -> Any:
    """Loads an object written by :func:`save`, or a folder of version 0.1.0.

    Only classes of this package and those given are used; no code from the file is run.

    Arguments:
        folder: The folder, or the file in it.
        classes: Your own classes by name, for objects that use them.

    Returns:
        An object equal to the one that was saved.

    Example:
        >>> load("no/such/folder")
        Traceback (most recent call last):
            ...
        abelnet.errors.AbelnetError: folder: no such file: no/such/folder/model.safetensors
    """
    path = _locate(Path(folder))
    try:
        content, tensors = _read(path)
        for name, dtype in content.get("dtypes", {}).items():
            tensors[name] = _in_dtype(name, tensors[name], dtype)
        model = _build(content, tensors, classes or {})
    except AbelnetError as error:
        raise AbelnetError(f"{path}: {error}") from None
    except Exception as error:  # a hostile configuration may raise anything
        reason = str(error).strip().partition("\n")[0][:200]
        raise AbelnetError(f"{path}: expected a model written by abelnet.save, got: {reason}") from None
    return model


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a configuration and of tensors: names, types, shapes and bytes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        x = tensors[name]
        digest.update(f"{name} {x.dtype} {tuple(x.shape)}".encode())
        digest.update(x.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _locate(path: Path) -> Path:
    """Returns the file to read: a regular file in the folder itself."""
    folder, path = (path.parent, path) if path.is_file() else (path, path / FILE_NAME)
    if not path.exists():
        raise AbelnetError(f"folder: no such file: {path}")
    if not path.resolve().is_relative_to(folder.resolve()) or not stat.S_ISREG(path.stat().st_mode):
        raise AbelnetError(f"folder: expected a regular file in {folder}, got a link or a device: {path}")
    return path


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        text = metadata.get(_METADATA)
        if text is not None and len(text) > _LONGEST:
            raise AbelnetError(f"configuration: expected at most {_LONGEST} characters, got {len(text)}")
        # Cloned into memory with torch's alignment, on which the last bit of a matrix product depends.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    content = None if text is None else json.loads(text, parse_constant=_refuse_constant)
    if content is not None and not isinstance(content, dict):
        raise AbelnetError(f"configuration: expected an object, got {type(content).__name__}")
    if content is None or "format" not in content:
        return legacy.translate(path, content, tensors)
    if content["format"] != FORMAT:
        raise AbelnetError(f"format: expected {FORMAT}, got {content['format']!r}; upgrade abelnet")
    if text is None or metadata.get(_CHECKSUM) != checksum(text, tensors):
        raise AbelnetError("checksum: expected that of configuration and tensors, got another; the file was changed")
    return content, tensors


def _in_dtype(name: str, x: Tensor, dtype: str) -> Tensor:
    """Returns a tensor that was stored in float16 in its own dtype."""
    if x.dtype != torch.float16 or dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise AbelnetError(f"{name}: expected float16, to load as a floating-point dtype, got {x.dtype} and {dtype!r}")
    return x.to(getattr(torch, dtype))


def _refuse_constant(name: str) -> float:
    raise AbelnetError(f"configuration: expected finite numbers, got {name}")


def _build(content: dict[str, Any], tensors: Mapping[str, Tensor], classes: Mapping[str, type[Configurable]]) -> Any:
    """Builds the object of a configuration from its tensors."""
    nodes = list(_nodes(content["model"]))
    if len(nodes) > _MOST_NODES:
        raise AbelnetError(f"configuration: expected at most {_MOST_NODES} values, got {len(nodes)}")
    modules: dict[str, nn.Module] = {}
    largest = max(_LEAST_LIMIT, sum(x.numel() for x in tensors.values()))
    # Built on the meta device, so that a configuration allocates nothing beyond the tensors of the file. Classes of the
    # caller may need real tensors; they must not change the caller's random state.
    own = any(isinstance(node, dict) and node.get("$class") in classes for node in nodes)
    with torch.random.fork_rng(devices=[]), torch.device("cpu" if own else "meta"):
        model = _decode(content["model"], "", modules, classes, largest)
    _fill(modules, tensors, frozenset(content.get("frozen", ())))
    for module in modules.values():
        for part in reversed(list(module.modules())):  # an operation computes with its parts
            if isinstance(part, Configurable):
                part.check_state()
    return model


def _nodes(value: Any, depth: int = 0) -> Iterator[Any]:
    """Iterates over all values of a configuration."""
    if depth > _DEEPEST:
        raise AbelnetError(f"configuration: expected at most {_DEEPEST} levels, got more")
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(part, depth + 1)


def _fill(modules: Mapping[str, nn.Module], tensors: Mapping[str, Tensor], frozen: frozenset[str]) -> None:
    """Loads all tensors into their modules, in their own dtype."""
    left = set(tensors)
    for prefix, module in modules.items():
        own = {name: tensors[prefix + name] for name in module.state_dict() if prefix + name in tensors}
        for name, part in module.named_modules():
            if isinstance(part, Configurable):
                part.upgrade_state(own, f"{name}." if name else "")
        for name, x in module.state_dict().items():
            if name not in own:
                raise AbelnetError(f"tensors: expected {prefix}{name}, got none")
            if own[name].shape != x.shape:
                raise AbelnetError(f"{prefix}{name}: expected shape {tuple(x.shape)}, got {tuple(own[name].shape)}")
            if own[name].is_floating_point() != x.is_floating_point():
                raise AbelnetError(f"{prefix}{name}: expected {x.dtype}, got {own[name].dtype}")
            if not bool(own[name].isfinite().all()):
                raise AbelnetError(f"{prefix}{name}: expected finite numbers, got NaN or infinity")
            if x.is_floating_point() and own[name].numel() and float(own[name].abs().max()) > _largest(own[name].dtype):
                raise AbelnetError(f"{prefix}{name}: expected numbers whose square is finite, got larger ones")
        module.load_state_dict(own, assign=True)
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(prefix + name not in frozen)
        left -= {prefix + name for name in own}
    if left:
        raise AbelnetError(
            f"tensors: expected only those of the configuration, got {', '.join(sorted(left)[:3])} as well"
        )


def _largest(dtype: torch.dtype) -> float:
    return math.sqrt(torch.finfo(dtype).max)


def _encode(value: Any, path: str, modules: dict[str, nn.Module] | None) -> Any:
    """Returns JSON data for a value; collects modules by the path of their tensors."""
    if isinstance(value, Configurable):
        if isinstance(value, nn.Module) and modules is not None:
            modules[path] = value
            modules = None  # parts of a module are in its own state dict
        config = {key: _encode(part, f"{path}{key}.", modules) for key, part in value.config().items()}
        return {"$class": _name_of(type(value)), "config": config}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) and not key.startswith("$") for key in value):
            raise AbelnetError(f"config: expected string keys without a leading $, got {list(value)!s:.80}")
        return {key: _encode(part, f"{path}{key}.", modules) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(part, f"{path}{i}.", modules) for i, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    raise AbelnetError(f"{path.rstrip('.')}: expected JSON data or a configurable object, got {type(value).__name__}")


def _decode(
    value: Any,
    path: str,
    modules: dict[str, nn.Module] | None,
    classes: Mapping[str, type[Configurable]],
    largest: float,
) -> Any:
    if isinstance(value, list):
        return [_decode(part, f"{path}{i}.", modules, classes, largest) for i, part in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$class" not in value:
        return {key: _decode(part, f"{path}{key}.", modules, classes, largest) for key, part in value.items()}
    kind = _class_of(value["$class"], classes)
    inner = None if issubclass(kind, nn.Module) else modules
    config = {key: _decode(part, f"{path}{key}.", inner, classes, largest) for key, part in value["config"].items()}
    if inner is None:
        for key, part in config.items():
            if isinstance(part, int) and part > largest:
                raise AbelnetError(f"{path}{key}: expected at most {largest}, got {part}")
    if value["$class"] not in classes:  # those of the caller may declare what they like
        check_arguments(kind, config)
    built = kind.from_config(config)
    if isinstance(built, nn.Module) and modules is not None:
        modules[path] = built
    return built


def _name_of(kind: type) -> str:
    """Returns the public path of a class, such as ``abelnet.bijections.Affine``; outside this package its name only."""
    module = kind.__module__.split(".")
    if module[0] != "abelnet":
        return kind.__name__
    rooms = [".".join(module[:depth]) for depth in range(2, len(module) + 1)]
    home = next(room for room in rooms if getattr(importlib.import_module(room), kind.__name__, None) is kind)
    return f"{home}.{kind.__name__}"


def _class_of(name: str, classes: Mapping[str, type[Configurable]]) -> type[Configurable]:
    if name in classes:
        return classes[name]
    home, _, kind = name.rpartition(".")
    if home.partition(".")[0] != "abelnet" or any(
        not part.isidentifier() or part[0] == "_" for part in name.split(".")
    ):
        raise AbelnetError(f"classes: expected the class {name}, got none; pass classes={{{name!r}: …}}")
    found = getattr(importlib.import_module(home), kind)
    if not (isinstance(found, type) and issubclass(found, Configurable)):
        raise AbelnetError(f"model: expected the name of a configurable class, got {name}")
    return found
