"""Results: figures computed from recordings, and what they say about an experiment.

Belongs here: measures of runs and of recordings without a scenario (`measures`), claims graded against
them and under ablations, intervals over repeats, and the standings of contenders. Does not belong here:
running anything, drawing, and writing pages.
"""
