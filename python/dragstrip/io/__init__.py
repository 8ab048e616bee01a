"""Files, the terminal and the cache of this machine.

Belongs here: opening files within limits and making their text safe to print (`untrusted`), checking the
structure of a document (`shape`), writing files and folders atomically (`files`), checksums, TOML, the cache
folder, and tables and progress messages on a terminal. Does not belong here: anything that knows what an
experiment, a scenario or a recording is.
"""
