"""The recording of a run, in memory and in a folder.

Belongs here: the tables as Arrow, and the only reader and writer of a recording's folder. Does not belong
here: anything that interprets a table. Tables and columns are defined in crates/recording, from which
`definition.py` is generated.
"""

from dragstrip.model.recording.definition import FORMAT, LATER, SCHEMA, Column
from dragstrip.model.recording.folder import CAPTURES, check_format, read, read_table, write
from dragstrip.model.recording.tables import NULL, TABLES, CoreTables, Recording

__all__ = [
    "CAPTURES",
    "FORMAT",
    "LATER",
    "NULL",
    "SCHEMA",
    "TABLES",
    "Column",
    "CoreTables",
    "Recording",
    "check_format",
    "read",
    "read_table",
    "write",
]
