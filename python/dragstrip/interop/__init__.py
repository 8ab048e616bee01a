"""Files and tables of other programs.

Scope: recordings written as their files (`writers`), their files read as recordings (`readers`), scripts of
tc commands (`scripts`), and an output folder's figures as a table for pandas, polars or Arrow (`frames`). Out
of scope: packet captures (`analysis.captures`) and Dragstrip's own files (`model`, `studies`).
"""
