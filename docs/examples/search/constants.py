"""A search over the constants of a text, with CMA-ES: pip install cma.

python docs/examples/search/constants.py [GENERATIONS]
"""

import sys

import cma

import dragstrip

TEXT = """\
on ack {{ if limited {{ cwnd = cwnd + {gain:.4f} * acked / cwnd }} }}
on loss {{ ssthresh = max(cwnd * {cut:.4f}, 2) }}
"""
POPULATION = 8
FAILED = 10.0
"""Loss of a text without a score."""


class Evolution:
    """Texts whose constants CMA-ES chooses."""

    def __init__(self):
        options = {"bounds": [0, 1], "popsize": POPULATION, "seed": 1, "verbose": -9}
        self._strategy = cma.CMAEvolutionStrategy([0.5, 0.5], 0.25, options)
        self._told = 0  # generations whose scores it has
        self._points = None  # those of the generation that is being scored

    def __call__(self, trials):
        """Return the texts of the next generation, after CMA-ES has got the scores of those before it."""
        generations = trials[-1].generation if trials else 0
        for generation in range(self._told + 1, generations + 1):
            # A search that goes on from its log begins with the scores of several generations.
            points = self._points or self._strategy.ask()
            scores = [trial.score for trial in trials if trial.generation == generation]
            self._strategy.tell(points, [FAILED if score is None else -score for score in scores])
            self._points = None
        self._told = generations
        self._points = self._strategy.ask()
        return [text(*point) for point in self._points]


def text(first, second):
    """Return the text with its constants at these fractions of their ranges."""
    return TEXT.format(gain=0.1 * 30**first, cut=0.3 + 0.65 * second)


if __name__ == "__main__":
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(
        dragstrip.search(
            Evolution(),
            hidden=20251,
            generations=generations,
            population=POPULATION,
            log="constants.jsonl",
            progress=True,
        )
    )
