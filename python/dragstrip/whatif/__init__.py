"""From a capture to a verdict: its path as an experiment, its algorithm by name, what others would do there.

Belongs here: what a capture and a run have in common (`seen`), the inferred path as options of `compare`
(`network`) and what it leaves open (`hypotheses`), runs on it (`bench`), how well they explain the capture
(`fit`), how near two courses are (`shapes`), which algorithm it was (`identify`), the way through all of them
(`walk`), text, experiment and page (`wording`, `console`, `written`, `page`). Does not belong here: what is
inferred of a path (`inference`), and packets (`formats`).
"""
