"""The passport of a congestion control: what it is good at, where it fails, whom it harms.

Rows (`rows`) are stated chapter by chapter (`chapters`): a scenario, a figure of its runs (`figures`), a rule
and the rule's source; `suite` has them all. `runs` makes the runs of the algorithm and of the
baselines, `store` keeps what they showed, `verdicts` judges rows, `document` gathers everything as JSON,
`against` compares two such documents, and `console`, `page`, `summary` and `junit` show one. Does not belong
here: simulating and measuring, which the core does.
"""
