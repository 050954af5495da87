"""The errors and warnings of this library; importing them imports nothing else."""

from __future__ import annotations

__all__ = ["AbelnetError", "ExtrapolationWarning", "MissingExtraError", "NotFittedError", "needs_extra"]

from collections.abc import Iterator
from contextlib import contextmanager


class AbelnetError(ValueError):
    """Raised for everything a caller can get wrong: names the argument, what was expected, and what was received.

    Attributes:
        details: Lines of evidence that the message leaves out; ``--verbose`` shows them on the command line.
    """

    details: tuple[str, ...] = ()


class NotFittedError(AbelnetError, AttributeError):
    """Raised by a method that needs a fitted model; it is scikit-learn's error as well, where that is imported."""


class MissingExtraError(AbelnetError, ImportError):
    """Raised where a package is missing that an extra of abelnet installs; the message says which."""


@contextmanager
def needs_extra(name: str, where: str) -> Iterator[None]:
    """Makes a failed import in a block an error that names the extra to install.

    Arguments:
        name: The extra.
        where: What needs it, for the message.

    Example:
        >>> with needs_extra("hub", "push_to_hub"):
        ...     import not_there
        Traceback (most recent call last):
            ...
        abelnet.errors.MissingExtraError: push_to_hub: not_there is not installed; pip install "abelnet[hub]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise MissingExtraError(f'{where}: {package} is not installed; pip install "abelnet[{name}]"') from None


class ExtrapolationWarning(UserWarning):
    """Issued for results that need a learned curve outside the range of the examples, or that the law does not have."""
