# %% [markdown]
# # Dragstrip in a notebook
#
# Three congestion controls on a home DSL line: race, look, ask. Everything is simulated in virtual time; the same seed gives
# the same bytes. [What the options mean](../how-to/compare.md), [named paths](../reference/paths.md),
# [From Python](../how-to/python.md).

# %%
import dragstrip

result = dragstrip.race("cubic", "bbr", "vegas", path="home DSL", duration="10s")
result

# %% [markdown]
# The figures are attributes, with their units in their names: of each alternative, of each flow, queue and ping
# ([all of them](../reference/result-json.md)).

# %%
[(entry.name, entry.goodput_bps, entry.rtt_ms_p50) for entry in result.ranking]

# %%
result.plot("queue")

# %% [markdown]
# `result.table` gives Arrow tables, which pandas, polars and duckdb take as they are: here the longest queue in front of the
# line, by run, from the [recordings' tables](../reference/recording.md).

# %%
queues = result.table("queues")
longest = {}
for row in queues.to_pylist():
    if row["link"] == "r-d":
        longest[row["scenario"]] = max(longest.get(row["scenario"], 0), row["backlog_bytes"])
longest

# %% [markdown]
# An experiment of one's own is described by `compare`, by classes, or by a TOML file (`dragstrip.Experiment.read`): here CUBIC
# with smaller queues.

# %%
race = dragstrip.compare(["cubic"], path="home DSL", duration="10s")
race

# %%
smaller = race.changed(vary={"path.queue": ["300ms", "30ms", "fq_codel"]})
{run.scenario: run.flows[0].rtt_ms.p50 for run in dragstrip.run(smaller)}
