"""Files and tables of other programs.

Belongs here: recordings written as their files (`writers`), their files read as recordings (`readers`),
packet captures inspected (`captures`), and the figures of an output folder as a table for pandas, polars or
Arrow (`frames`). Does not belong here: Dragstrip's own files, which `recording`, `execution` and `sweep` read
and write.
"""
