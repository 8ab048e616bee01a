"""The experiment: what a person writes, and the scenarios that it means.

What belongs here: the classes of an experiment file (`types`), the values that they hold (`quantities`,
`programs`, `traces`), experiments made from a command line (`comparison`) or found in the catalogue
(`catalogue`), and the scenario of each run (`expand`, `stacks`). What does not: running anything, and
anything about results.
"""
