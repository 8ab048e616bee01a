"""From a capture to a verdict: its path as an experiment, its algorithm by name, predictions for others.

Scope: the trace of a flow in a capture or a run (`flow_trace`), the inferred path as options of `compare`
(`network`) and the paths it leaves open (`hypotheses`), runs on it (`bench`), their fit to the capture
(`fit`), the distance of two courses (`shapes`), the algorithm (`identify`), the way through all of them
(`walk`), text, experiment and page (`wording`, `console`, `experiment_text`, `page`). Out of scope: the
inference of a path (`inference`), and packets (`analysis.captures`).
"""
