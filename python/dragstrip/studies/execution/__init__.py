"""Execution: from a checked plan to a written output folder.

Belongs here: running, grading and writing a whole experiment (`runner`), running it twice and comparing
(`check`), running it on two engines (`side_by_side`), and examining this machine (`doctor`). Does not belong
here: making one run, which is the work of `runs` and the engines, and sweeps, which write other files.
"""
