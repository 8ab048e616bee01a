"""A search in which a language model writes the texts: here a stub in its place, which needs no network.

python docs/examples/search/model.py [GENERATIONS]
"""

import random
import sys

import dragstrip

POPULATION = 4
TASK = "Write a congestion control in the language of docs/how-to/program.md. Higher scores are better."


def prompt(trials):
    """Return what the model reads: the task, the best texts with their scores, and the last errors."""
    scored = sorted((trial for trial in trials if trial.score is not None), key=lambda trial: -trial.score)
    failed = [trial for trial in trials if trial.error is not None]
    lines = [TASK]
    for trial in scored[:3]:
        kinds = ", ".join(f"{row['id']} {row['score']:+.2f}" for row in trial.rows)
        lines += ["", f"score {trial.score:+.3f} ({kinds}):", trial.text]
    for trial in failed[-3:]:
        lines += ["", f"refused, {trial.error}:", trial.text]
    return "\n".join(lines)


def complete(question, seed):
    """Answer in place of a model: one time in three with a fault, until the question shows the error.

    Replace it by a call of a service, with that service's own time limit.
    """
    dice = random.Random(f"{seed}/{question}")  # noqa: S311
    name = "cwdn" if "refused" not in question and dice.random() < 1 / 3 else "cwnd"
    cut, delay = dice.choice((0.5, 0.6, 0.7, 0.8)), dice.choice((1.2, 1.5, 2.0))
    return (
        f"on ack {{ if rtt > {delay} * min_rtt {{ cwnd = max({name} - acked / cwnd, 2) }} "
        f"else {{ if limited {{ cwnd = cwnd + acked / cwnd }} }} }}\n"
        f"on loss {{ ssthresh = max(cwnd * {cut}, 2) }}\n"
    )


def propose(trials):
    """Return the texts of the next generation."""
    question = prompt(trials)
    return [complete(question, number) for number in range(POPULATION)]


if __name__ == "__main__":
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    print(
        dragstrip.search(
            propose,
            hidden=20251,
            generations=generations,
            population=POPULATION,
            log="model.jsonl",
            timeout_s=60,
            progress=True,
        )
    )
