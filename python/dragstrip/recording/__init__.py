"""The recording: what a run left, in memory and in a folder.

What lives here: the tables as Arrow, and the one reader and writer of a recording's folder. What must not:
anything that interprets a table. Tables and columns are defined in crates/recording, from which
`definition.py` is generated.
"""

from dragstrip.recording.definition import FORMAT, SCHEMA, Column
from dragstrip.recording.folder import CAPTURES, format_of, read, read_table, write
from dragstrip.recording.tables import NULL, TABLES, Recording, from_core

__all__ = [
    "CAPTURES",
    "FORMAT",
    "NULL",
    "SCHEMA",
    "TABLES",
    "Column",
    "Recording",
    "format_of",
    "from_core",
    "read",
    "read_table",
    "write",
]
