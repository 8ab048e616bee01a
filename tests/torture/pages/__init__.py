"""Pages of random experiments held against their results: `true_pages.py` is the script.

`experiments.py` draws experiments, `shown.py` reads what page and terminal show, `expected.py` works out what they
should show, from the result document and the recordings alone. Nothing here uses `dragstrip.results.comparison` or
`dragstrip.report`: what is compared must not have one source.
"""
