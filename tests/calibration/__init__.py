"""How often `dragstrip diagnose` is right: situations with known causes, rendered as the files that people have.

Belongs here: situations drawn from a seed (`situations`), their truth (`truth`), the files (`files`), the score
(`score`), the page docs/reference/diagnosis.md (`page`; `make diagnosis`). Does not belong here: rules of the
diagnosis, and what would fit them.
"""
