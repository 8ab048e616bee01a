"""The chapters of a passport, a module each: `NAME`, `TITLE`, and `rows`, which gives the chapter's rows.

Belongs here: scenarios, limits and their sources. Does not belong here: running and judging.
"""
