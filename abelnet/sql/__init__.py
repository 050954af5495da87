"""Laws as SQL: one SELECT with native aggregates, for any engine that can sum a column."""

from abelnet.sql.dialects import DIALECTS, Dialect
from abelnet.sql.query import aggregate_query, quote, select

__all__ = ["DIALECTS", "Dialect", "aggregate_query", "quote", "select"]
