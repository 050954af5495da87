"""Laws as SQL: one SELECT with native aggregates, for any engine that can sum a column."""

from abelnet.engines.sql.dialects import DIALECTS, Dialect
from abelnet.engines.sql.query import aggregate_query, quote, select

__all__ = ["DIALECTS", "Dialect", "aggregate_query", "quote", "select"]
