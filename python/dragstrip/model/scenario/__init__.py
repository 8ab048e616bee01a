"""The scenario: one concrete run, with every quantity in base units.

Belongs here: the classes of its document (`types`, generated from crates/scenario), the facts of its paths as
the core computes them (`paths`), and whether its recording fits into memory (`memory`). Does not belong here:
the short form that people write, which is an experiment.
"""
