"""Random hand-ins for the judge of the lessons: several files at once, most of which hold something odd.

Lines are right, wrong or no answers: numbers of hundreds of digits, lists for names, deep nesting, missing recordings;
some files are none, or have odd names. Each file is graded or refused in one line that names it, the honest ones are
graded as ever, the status is 2 if and only if one was refused, and nothing printed is obeyed by a terminal.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from common import LIMIT_S, environment, main
from disciplines import broken, valid

from dragstrip.playground.lessons import COUNT, judge, lesson

ODD_JSON = (
    *(
        "9" * 400,
        "-" + "9" * 5000,
        "1e400",
        "-0",
        "0.5e-400",
        "NaN",
        "-Infinity",
        "true",
        "false",
        "null",
        "{}",
        "[]",
    ),
    *(
        '""',
        '"\\ud800"',
        '"\\u001b[2J"',
        '"\\u202e"',
        "[" * 200 + "]" * 200,
        "[" * 9000,
        '{"a":' * 90 + "1" + "}" * 90,
    ),
    *(
        '["cubic"]',
        '[["cubic"]]',
        "[1]",
        '["fixed:window=10"]',
        '{"algorithms":[]}',
        '{"queue":["pfifo"]}',
        '"pfifo"',
    ),
    *(
        '{"queue":null}',
        '{"algorithms":"cubic"}',
        '{"rate":"1tbit"}',
        '{"queue":"' + "x" * 5000 + '"}',
        "2.9",
        "1",
    ),
    *(
        '{"algorithms":["cubic*101"]}',
        '{"algorithms":["cubic*99999999999999999999"]}',
        '{"algorithms":["cubic*0"]}',
    ),
    *(
        '{"algorithms":["' + "cubic*" * 30 + '"]}',
        '{"algorithms":["fixed:window=1e308"]}',
        '{"queue":"noqueue"}',
        "\\",
    ),
    *(
        '{"algorithms":["bbr@17000s"]}',
        '{"algorithms":["cubic+29s"]}',
        '{"queue":"17000s"}',
        '{"queue":"0.001bdp"}',
    ),
)
ODD_LINES = (
    *(
        "",
        "{",
        "}",
        "{}",
        "[]",
        "lesson 1: 2.9",
        "\ufeff{}",
        "{" * 5000,
        '{"lesson":1}',
        '{"answer":1}',
        "\x1b[2J",
        "{\0}",
    ),
    *(
        '{"lesson":1,"lesson":2,"answer":1,"recording":"0123abcd"}',
        '{"lesson":1,"answer":2.9}',
        "{" + "x" * 20_000,
    ),
    *(
        "Good morning,",
        "these are my answers:",
        '{"lesson":1,"answer":1,"recording":"0123abcd"} and more',
        "{'lesson':1}",
    ),
)
NAMES = (
    "ada.txt",
    "b c.txt",
    "[red].txt",
    "\x1b[31mx.txt",
    "\u202etxt.ada",
    "-x.txt",
    "a\nb.txt",
    "é.txt",
    "'q'.txt",
    "\x9b2J",
)


@cache
def honest(number: int) -> tuple[str, str]:
    """The right answer to a lesson as *Copy answers* gives it, and how it is graded."""
    told = lesson(number)
    answer = told["quiz"]["right"]
    recording = judge(told, answer)[1].sha256[:8]
    return json.dumps({"lesson": number, "answer": answer, "recording": recording}), f"  {number}: right"


def line(dice: random.Random) -> str:
    """A line of a file."""
    draw = dice.random()
    if draw < 0.15:
        return dice.choice(ODD_LINES)
    number = (
        str(dice.randint(1, COUNT))
        if dice.random() < 0.85
        else dice.choice([*ODD_JSON, "0", "9", "1.0", '"1"'])
    )
    recording = (
        '"0123abcd"'
        if dice.random() < 0.8
        else dice.choice([*ODD_JSON, '"0123ABCD"', '"0"', '"' + "a" * 65 + '"'])
    )
    fields = [f'"lesson":{number}', f'"answer":{answer(dice)}', f'"recording":{recording}']
    if dice.random() < 0.1:
        fields.pop(dice.randrange(3))
    if dice.random() < 0.1:
        fields.append(f'"more":{dice.choice(ODD_JSON)}')
    dice.shuffle(fields)
    text = "{" + ",".join(fields) + "}"
    if dice.random() < 0.05:
        text = text[: dice.randrange(1, len(text))]
    return text


def answer(dice: random.Random) -> str:
    """An answer: often odd, else one that can be run."""
    match dice.randrange(4):
        case 0:
            return dice.choice(ODD_JSON)
        case 1:
            return f"{dice.uniform(0, 1000):.3g}"
        case 2:
            queue = valid(dice)
            return json.dumps({"queue": broken(queue, dice) if dice.random() < 0.3 else queue})
        case _:
            words = [
                "fixed:window=34",
                "bbr@20ms",
                "bbr@80ms",
                "cubic*2",
                "reno+1s",
                "vegas",
                "exp:factor=1",
                "",
                "prague",
            ]
            return json.dumps({"algorithms": dice.sample(words, dice.choice([1, 1, 2]))})


def odd_file(dice: random.Random, file: Path) -> None:
    """Something that is hardly a file of answers."""
    match dice.randrange(7):
        case 0:
            pass  # is missing
        case 1:
            file.mkdir()
        case 2:
            os.mkfifo(file)
        case 3:
            file.write_bytes(dice.randbytes(300))
        case 4:
            file.write_text(honest(1)[0] + "\n" + " " * (1 << 18))
        case 5:
            file.symlink_to("/dev/zero")
        case _:
            file.write_text("\n".join(dice.choice(ODD_LINES) for _ in range(50)))


def judged(folder: Path, files: list[str]) -> tuple[int, str, str]:
    """The judge's status and what it prints."""
    words = [sys.executable, "-P", "-m", "dragstrip.playground.lessons", *files]
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment(folder, PYTHONIOENCODING="utf-8:backslashreplace"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def trial(number: int, folder: Path) -> str:
    """Grades the files with this number."""
    dice = random.Random(number)
    lessons = sorted(dice.sample(range(1, COUNT + 1), 2))
    (folder / "honest.txt").write_text("".join(honest(number)[0] + "\n" for number in lessons))
    others = dice.sample(NAMES, dice.choice([1, 1, 2, 3]))
    for name in others:
        if dice.random() < 0.2:
            odd_file(dice, folder / name)
        else:
            text = "\n".join(line(dice) for _ in range(dice.choice([1, 1, 2, 5])))
            (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    files = ["honest.txt", *others]
    dice.shuffle(files)
    status, out, err = judged(folder, files)
    said: Any = f"{files}: status {status}: {out[-1500:]} {err[-1500:]}"
    assert "Traceback" not in err, said
    assert not set(out + err) & set("\x1b\x9b\u202e\0"), f"a terminal obeys: {said!r}"
    heads = [found for found in out.splitlines() if not found.startswith("  ") and found.endswith(" right")]
    refused = err.splitlines()
    assert len(heads) + len(refused) == len(files), f"not one line for each file: {said}"
    assert status == (2 if refused else 0), said
    marks = "".join(f"{honest(number)[1]}\n" for number in lessons)
    assert f"honest.txt: 2 of {COUNT} right\n{marks}" in out, f"the honest file: {said}"
    return "some refused" if refused else "all graded"


if __name__ == "__main__":
    main("hand-ins", trial, count=300, sample=3, about=__doc__)
