"""Laws on tables larger than memory: streaming reads and mergeable states."""
