# %% [markdown]
# # An algorithm of your own
#
# A congestion control is a text of a few lines ([the language](../how-to/program.md)). It runs without a compiler, beside any
# other.

# %%
import dragstrip
from dragstrip import testing

gentle = dragstrip.program(
    "gentle",
    """
param keep = 0.7
on ack {
    if limited {
        if slow_start { cwnd = min(cwnd + acked, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}
on loss { ssthresh = max(keep * cwnd, 2) }
""",
)
path = {"rate": "20mbit", "rtt": "40ms", "queue": "1bdp", "duration": "20s"}
alone = dragstrip.race(gentle, "reno", "cubic", **path)
alone

# %%
alone.plot("window")

# %% [markdown]
# Beside CUBIC on the same path:

# %%
together = dragstrip.race(gentle, "cubic", together=True, **path)
together

# %%
together.plot("shares")

# %% [markdown]
# A race can be an assertion. The message of one that fails has the figure and the command that replays it; the pytest plugin
# keeps the report.

# %%
testing.assert_share(together, "gentle", at_least=0.2, at_most=0.8)
try:
    testing.assert_rtt(alone, "cubic", at_most="50ms")
except AssertionError as error:
    print(error)

# %% [markdown]
# A fault in the text is marked:

# %%
try:
    dragstrip.program("broken", "on ack {\n    cwnd = cwnd + windows\n}")
except dragstrip.BadInputError as error:
    print(error)
