"""Questions that take runs to answer: experiment, sweep, passport, attack, validation, publication.

Scope: which runs a question needs, and the document that answers it. Out of scope: making the runs
(`runs`) and measuring them (`results`).
"""
