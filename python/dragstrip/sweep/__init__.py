"""Sweeps: from one run to a hundred thousand, and a map of who wins where.

What lives here: which runs there are (axes, plan), where they run (local, cluster), what is kept of them
(store, dataset) and what they say (statistics, map, guide). What must not: anything about a single run;
that is `expand`, `engines` and `measures`.

    plan ──scenario text──▶ children (one process per core, or Dask) ──rows──▶ store ──▶ dataset ──▶ map
"""
