"""Text from files of many formats: records (`read_rows`) and pairs of source and target (`read_pairs`), streamed.

One reader a format; `endings.py` has the table. To add a format: write its reader, add its ending.
"""

from regard.data.formats.registry import read_rows
from regard.data.formats.rows import Bad, Pair, Row
from regard.data.pairs.rows import read_pairs

__all__ = ["Bad", "Pair", "Row", "read_pairs", "read_rows"]
