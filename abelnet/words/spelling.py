r"""How the second words of pairs are spelled from the first: edits at both ends of a word, applied to other words."""

from __future__ import annotations

__all__ = ["Edit", "Spelling", "edits", "literal_edits"]

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

# Fewer letters in common are coincidence.
_SHORTEST = 2
# Examples that are predicted from the others: a share is known well enough from as many.
_JUDGED = 100
_VOWELS = tuple("aeiou")


class Edit(NamedTuple):
    r"""Replaces the beginning and the ending of a word, around the letters that it keeps.

    Attributes:
        before: The beginning that is removed.
        prefix: The beginning that replaces it.
        after: The ending that is removed.
        suffix: The ending that replaces it.
        undoubles: Whether the last letter kept is double in front of the ending that is removed.
        doubles: Whether the last letter kept is double in front of the ending that replaces it.

    Example:
        >>> Edit("", "", "y", "ies").apply("city"), Edit("", "re", "", "").apply("build")
        ('cities', 'rebuild')
        >>> Edit("", "", "", "ing", doubles=True).apply("run")
        'running'
    """

    before: str
    prefix: str
    after: str
    suffix: str
    undoubles: bool = False
    doubles: bool = False

    def apply(self, word: str) -> str | None:
        """Returns the word with both ends replaced, or None if it does not have the ends to remove."""
        if not (word.startswith(self.before) and word.endswith(self.after)):
            return None
        return self.around(word[len(self.before) : len(word) - len(self.after)])

    def around(self, kept: str) -> str | None:
        """Returns the new ends around the letters between those that are removed."""
        if self.undoubles:
            if kept[-1:] != kept[-2:-1]:
                return None
            kept = kept[:-1]
        return self.prefix + kept + (kept[-1] if self.doubles else "") + self.suffix if kept else None


def literal_edits(a: str, b: str) -> list[Edit]:
    """Returns the edits that make ``b`` of ``a`` around their longest common part, with and without doubling a letter.

    There are none if less than half of the shorter word is common.

    Example:
        >>> literal_edits("france", "paris"), literal_edits("try", "tries")
        ([], [Edit(before='', prefix='', after='y', suffix='ies', undoubles=False, doubles=False)])
    """
    start, other, size = SequenceMatcher(None, a, b, autojunk=False).find_longest_match()
    if size < max(_SHORTEST, min(len(a), len(b)) / 2):
        return []
    before, prefix, after, suffix = a[:start], b[:other], a[start + size :], b[other + size :]
    found, last = [Edit(before, prefix, after, suffix)], a[start + size - 1]
    if suffix.startswith(last):
        found.append(Edit(before, prefix, after, suffix[1:], doubles=True))
    if after.startswith(last):
        found.append(Edit(before, prefix, after[1:], suffix, undoubles=True))
    return found


def edits(a: str, b: str) -> set[Edit]:
    """Returns the edits that make ``b`` of ``a``, and those that change words with other endings alike.

    As usual in English, a last consonant is doubled, a silent *e* dropped, or *y* becomes *i*, in front of an ending.

    Example:
        >>> found = edits("walk", "walked")
        >>> [any(edit.apply(word) == past for edit in found) for word, past in [("hope", "hoped"), ("plan", "planned")]]
        [True, True]
    """
    literal = literal_edits(a, b)
    found = set(literal)
    for edit in literal:
        changes = [(edit.after, edit.suffix)]
        last = a[len(a) - len(edit.after) - 1]
        if last in "ey" and not (edit.undoubles or edit.doubles):
            # The last common letter may belong to the endings: like, liked is lik + e, lik + ed.
            changes.append((last + edit.after, last + edit.suffix))
        for after, suffix in changes:
            for joined in _JOINTS:
                for old in _endings(joined, after, edit.undoubles):
                    for new in _endings(joined, suffix, edit.doubles):
                        if old != new:
                            found |= {Edit(edit.before, edit.prefix, *written) for written in _rewritten(old, new)}
    return found


class Spelling:
    r"""What pairs :math:`a_i : b_i` say about how an answer is spelled, given the word :math:`c` that is asked for.

    Each pair spells other words by its :func:`edits`. The share of the :math:`k` pairs that spell :math:`x` from
    :math:`c` is

    .. math:: P(x \mid c) = \frac{1}{k} \bigl|\{i : x = f(c) \text{ for an edit } f \text{ of } a_i : b_i\}\bigr|

    Arguments:
        pairs: The pairs of words.

    Example:
        >>> spelling = Spelling([("try", "tries"), ("walk", "walks"), ("run", "running")])
        >>> shares = spelling.shares("cry")
        >>> [round(shares[word], 2) for word in ("cries", "crying")]
        [0.67, 0.33]
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = list(pairs)

    def shares(self, word: str, used: Sequence[int] | None = None) -> dict[str, float]:
        r"""Returns :math:`P(x \mid c)` of all words :math:`x` that the pairs spell, in a vocabulary or not.

        Arguments:
            word: The word :math:`c`.
            used: Places of the pairs to use; all if None.
        """
        places = set(range(len(self.pairs)) if used is None else used)
        counts = {spelled: len(places & by) for spelled, by in self._spelled(word).items()}
        return {spelled: count / len(places) for spelled, count in counts.items() if count}

    def explained(self, used: Sequence[int] | None = None) -> tuple[int, int]:
        """Returns how many examples are spelled as another one says, and of how many that is known.

        Examples of the same word are not others, so of one pair nothing is known. Of more than 100 pairs, about 100 are
        looked at.

        Arguments:
            used: Places of the pairs to use; all if None.

        Example:
            >>> Spelling([("walk", "walked"), ("hope", "hoped"), ("go", "went")]).explained()
            (2, 3)
        """
        places = range(len(self.pairs)) if used is None else used
        if len({self.pairs[i][0] for i in places}) < 2:
            return 0, 0
        known = set(places)
        judged = places[:: -(-len(places) // _JUDGED)]
        return sum(not known.isdisjoint(self._others(i)) for i in judged), len(judged)

    @cached_property
    def _edits(self) -> dict[tuple[str, str], dict[Edit, set[int]]]:
        """The pairs with each edit, by the ends that it removes."""
        found: dict[tuple[str, str], dict[Edit, set[int]]] = defaultdict(lambda: defaultdict(set))
        for i, pair in enumerate(self.pairs):
            for edit in edits(*pair):
                found[edit.before, edit.after][edit].add(i)
        return found

    @cached_property
    def _longest(self) -> tuple[int, int]:
        """Lengths of the longest beginning and ending that an edit removes."""
        befores, afters = zip(*self._edits, strict=True) if self._edits else ((), ())
        return max(map(len, befores), default=0), max(map(len, afters), default=0)

    def _spelled(self, word: str) -> dict[str, set[int]]:
        """Returns the words that are spelled from a word, and by which pairs."""
        found: dict[str, set[int]] = defaultdict(set)
        longest_before, longest_after = self._longest
        for start in range(min(longest_before, len(word) - 1) + 1):
            for stop in range(max(start + 1, len(word) - longest_after), len(word) + 1):
                for edit, by in self._edits.get((word[:start], word[stop:]), {}).items():
                    spelled = edit.around(word[start:stop])
                    if spelled is not None:
                        found[spelled] |= by
        return found

    def _others(self, i: int) -> set[int]:
        """Returns the pairs of other words that spell the second word of a pair from its first."""
        if i not in self._explaining:
            a, b = self.pairs[i]
            self._explaining[i] = {j for j in self._spelled(a).get(b, ()) if self.pairs[j][0] != a}
        return self._explaining[i]

    @cached_property
    def _explaining(self) -> dict[int, set[int]]:
        return {}


def _plain(ending: str) -> tuple[str, bool]:
    return ending, False


def _doubled(ending: str) -> tuple[str, bool]:
    return ending, ending.startswith(_VOWELS)


def _silent_e(ending: str) -> tuple[str, bool]:
    return ending if ending.startswith(_VOWELS) else "e" + ending, False


def _final_y(ending: str) -> tuple[str, bool]:
    if ending == "s":
        return "ies", False
    return ("y" if not ending or ending.startswith("i") else "i") + ending, False


# How an ending is written behind a stem of some kind, and whether the last letter of the stem is doubled.
_JOINTS: tuple[Callable[[str], tuple[str, bool]], ...] = (_plain, _doubled, _silent_e, _final_y)


def _endings(joined: Callable[[str], tuple[str, bool]], written: str, doubled: bool) -> list[str]:
    """Returns the endings that are written so behind a stem of some kind."""
    return [ending for ending in dict.fromkeys(written[k:] for k in range(3)) if joined(ending) == (written, doubled)]


def _rewritten(old: str, new: str) -> Iterator[tuple[str, str, bool, bool]]:
    """Yields how an ending and the one that replaces it are written, behind each kind of stem."""
    for joined in _JOINTS:
        (after, undoubles), (suffix, doubles) = joined(old), joined(new)
        yield after, suffix, undoubles, doubles
