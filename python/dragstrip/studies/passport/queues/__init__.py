"""The passport of a queue discipline: the scenarios of RFC 7928, beside two drop-tail queues.

Its rows (`suite`) are those of a passport with the discipline in the algorithm's place (`scenario`), with
figures of queues (`figures`); `words` reads the discipline and its main parameter, `document` gathers the
verdicts. Everything else is the algorithm's passport's: runs, verdicts, page, terminal and JUnit.
"""
