r"""How the second words of pairs are spelled from the first: edits at both ends of a word, applied to other words."""

from __future__ import annotations

__all__ = ["Edit", "Spelling", "literal_edits", "usual_edits"]

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from abelnet.checks import check_number

# Fewer letters in common are coincidence.
_SHORTEST = 2
# Letters of an ending that are compared: longer ones say no more about how it changes.
_ENDING = 4
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
    edit = Edit(a[:start], b[:other], a[start + size :], b[other + size :])
    found, last = [edit], a[start + size - 1]
    if edit.suffix.startswith(last):
        found.append(edit._replace(suffix=edit.suffix[1:], doubles=True))
    if edit.after.startswith(last):
        found.append(edit._replace(after=edit.after[1:], undoubles=True))
    return found


def usual_edits(a: str, b: str) -> set[Edit]:
    """Returns the edits with which words that end in other letters change as ``a`` does, as usual in English.

    The last consonant is doubled, a silent *e* dropped, or *y* becomes *i*, between a stem and an ending.

    Example:
        >>> edits = usual_edits("walk", "walked")
        >>> [any(edit.apply(a) == b for edit in edits) for a, b in [("hope", "hoped"), ("plan", "planned")]]
        [True, True]
    """
    found = set()
    for edit in literal_edits(a, b):
        ends = [(edit.after, edit.suffix)]
        last = a[len(a) - len(edit.after) - 1]
        if last in "ey" and not (edit.undoubles or edit.doubles):
            # The last common letter may belong to the ends: like, liked is lik + e, lik + ed.
            ends.append((last + edit.after, last + edit.suffix))
        for after, suffix in ends:
            for joined in _JOINTS:
                for old in _endings(joined, after, edit.undoubles):
                    for new in _endings(joined, suffix, edit.doubles):
                        if old != new:
                            found |= {Edit(edit.before, edit.prefix, *ends) for ends in _respelled(old, new)}
    return found


class Spelling:
    r"""What pairs :math:`a_i : b_i` say about how an answer is spelled, given the word :math:`c` that is asked for.

    Each pair spells other words with its edits. The share of the pairs by which :math:`x` is spelled from :math:`c` is

    .. math:: P(x \mid c) = \frac{\sum_i \eta^{e(a_i, c)} m_i(c, x)}{\sum_i \eta^{e(a_i, c)}}

    where :math:`e` is the number of letters of a common ending, at most 4: words with the same ending often change
    alike. :math:`m_i` is 1 for :func:`literal_edits`, less for :func:`usual_edits`, and 0 for all other words.

    Arguments:
        pairs: The pairs of words.
        ending: The weight :math:`\eta` of a letter of a common ending, at least 1.
        usual: What the usual edits count, from 0 to 1.

    Example:
        >>> spelling = Spelling([("try", "tries"), ("walk", "walks"), ("run", "runs")], ending=1.5)
        >>> {word: round(share, 2) for word, share in spelling.shares("cry").items() if share > 0.2}
        {'cries': 0.67, 'crys': 0.63}
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], *, ending: float = 1.5, usual: float = 0.3) -> None:
        check_number("ending", ending, least=1)
        check_number("usual", usual, least=0, most=1)
        self.pairs, self.ending, self.usual = list(pairs), ending, usual

    def shares(self, word: str, used: Sequence[int] | None = None) -> dict[str, float]:
        r"""Returns :math:`P(x \mid c)` of all words :math:`x` that the pairs spell, in the vocabulary or not.

        Arguments:
            word: The word :math:`c`.
            used: Places of the pairs to use; all if None.
        """
        places = range(len(self.pairs)) if used is None else used
        weights = {i: self.ending ** _common_ending(self.pairs[i][0], word) for i in places}
        total = sum(weights.values())
        shares = {}
        for spelled, counted in self._spelled(word).items():
            share = sum(weights[i] * counts for i, counts in counted.items() if i in weights) / total
            if share:
                shares[spelled] = share
        return shares

    def explained(self, used: Sequence[int] | None = None) -> tuple[float, int]:
        """Returns how many examples are spelled as the others say, and of how many that is known.

        Examples with the same first word are not others, so that of one pair nothing is known. Of more than 100 pairs,
        about 100 are looked at.

        Arguments:
            used: Places of the pairs to use; all if None.

        Example:
            >>> Spelling([("walk", "walked"), ("play", "played"), ("go", "went")]).explained()
            (2.0, 3)
        """
        places = range(len(self.pairs)) if used is None else used
        if len({self.pairs[i][0] for i in places}) < 2:
            return 0.0, 0
        known = set(places)
        judged = places[:: -(-len(places) // _JUDGED)]
        found = (next((counts for j, counts in self._others(i) if j in known), 0.0) for i in judged)
        return sum(found), len(judged)

    @cached_property
    def _edits(self) -> dict[tuple[str, str], dict[Edit, dict[int, float]]]:
        """What each edit counts for each pair, by the ends that it removes."""
        edits: dict[tuple[str, str], dict[Edit, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for i, (a, b) in enumerate(self.pairs):
            counted = dict.fromkeys(usual_edits(a, b), self.usual) if self.usual else {}
            for edit, counts in (counted | dict.fromkeys(literal_edits(a, b), 1.0)).items():
                edits[edit.before, edit.after][edit][i] = counts
        return edits

    @cached_property
    def _longest(self) -> tuple[int, int]:
        """Lengths of the longest beginning and ending that an edit removes."""
        return max((len(before) for before, _ in self._edits), default=0), max(
            (len(after) for _, after in self._edits), default=0
        )

    def _spelled(self, word: str) -> dict[str, dict[int, float]]:
        """Returns the words spelled from a word, and what that counts for each pair that spells it."""
        found: dict[str, dict[int, float]] = defaultdict(dict)
        longest_before, longest_after = self._longest
        for start in range(min(longest_before, len(word) - 1) + 1):
            for stop in range(max(start + 1, len(word) - longest_after), len(word) + 1):
                for edit, counted in self._edits.get((word[:start], word[stop:]), {}).items():
                    spelled = edit.around(word[start:stop])
                    if spelled is not None:
                        known = found[spelled]
                        for i, counts in counted.items():
                            known[i] = max(counts, known.get(i, 0.0))
        return found

    def _others(self, i: int) -> list[tuple[int, float]]:
        """Returns the pairs of other words that spell the second word of a pair from its first, literal ones first."""
        if i not in self._explaining:
            a, b = self.pairs[i]
            others = [(j, counts) for j, counts in self._spelled(a).get(b, {}).items() if self.pairs[j][0] != a]
            self._explaining[i] = sorted(others, key=lambda other: -other[1])
        return self._explaining[i]

    @cached_property
    def _explaining(self) -> dict[int, list[tuple[int, float]]]:
        return {}


def _common_ending(a: str, b: str) -> int:
    """Returns the number of letters of the common ending, at most 4."""
    count = 0
    for x, y in zip(reversed(a[-_ENDING:]), reversed(b[-_ENDING:]), strict=False):
        if x != y:
            break
        count += 1
    return count


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


def _respelled(old: str, new: str) -> Iterator[tuple[str, str, bool, bool]]:
    """Yields how an ending and the one that replaces it are written, behind each kind of stem."""
    for joined in _JOINTS:
        (after, undoubles), (suffix, doubles) = joined(old), joined(new)
        yield after, suffix, undoubles, doubles
