"""Sweeps: from one run to a hundred thousand, and a map of who wins where.

Belongs here: which runs there are (`axes`, `plan`), where they run (`cluster`; `runs` for this machine), what
is kept of them (`store`, `dataset`) and what they say (`stats`, `map`, `guide`). Does not belong here:
anything about a single run, which is the work of `experiment`, `engines` and `results`.

    plan ──scenario text──▶ children (one process per core, or Dask) ──rows──▶ store ──▶ dataset ──▶ map
"""
