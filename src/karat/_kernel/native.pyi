# The functions of the compiled kernel. Each returns None if the data is not plain: then its twin decides.

from collections.abc import Sequence
from typing import Any

from karat._internal.arrays import Bools, Floats, Ints

# Query, rank and gold number of every place of the gold keys. Twin: `Lists`.
def find_in_lists(rankings: list[Sequence[Any]], keys: list[str], start: Ints, depth: Ints, /) -> bytearray | None: ...

# The score of each gold key, the number of greater ones, and whether another is equal. Twin: `Dicts`.
def find_in_dicts(
    dicts: list[Any],
    keys: list[str],
    start: Ints,
    single: bool,
    numbers: bool,
    check: bool,
    own: Floats,
    above: Ints,
    tied: Bools,
    /,
) -> bool | None: ...

# Key number, row, number of greater scores and tie of every place of the gold keys, and if all scores are finite; the
# columns are Arrow streams of one column each. Twin: `Table`.
def find_in_column(
    items: object, start: Ints, keys: object, key_start: Ints, scores: object | None, single: bool, /
) -> tuple[bytearray, bool] | None: ...

# The rows at which a column, an Arrow stream, changes. Twin: `first_rows`.
def changes_in_column(column: object, /) -> bytearray | None: ...

# The items with the greatest scores, best first, and these scores; None also if ids decide. Twin: `top_items`.
def best_of_dict(scored: Any, ranks: int, single: bool, /) -> tuple[list[Any], list[float]] | None: ...

# Query, needle, rank and way of each pair of texts of which one occurs in the other. Twins: `Contains`, `spans`.
def find_texts(
    needles: list[str], start: Ints, texts: list[list[str]], first: int, last: int, ways: int, /
) -> bytearray | None: ...
