"""Readers and writers of files, one format a file: records (`read_rows`), tables, arrays, images in folders, streamed.

To add a format of records: write its reader, and add its ending to the table in `registry.py`.
"""

from regard.data.formats.registry import read_rows
from regard.data.formats.rows import Bad, Row

__all__ = ["Bad", "Row", "read_rows"]
