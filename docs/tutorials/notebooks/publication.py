# %% [markdown]
# # A publication reproduced
#
# The catalogue has the experiments of publications, with the figures that they print
# ([catalogue](../reference/catalogue.md)). A run grades each of them.

# %%
import dragstrip

dragstrip.publications()

# %%
experiment = dragstrip.publication("caia-110729a/adsl1")
experiment

# %%
result = dragstrip.run(experiment)
result

# %%
result.plot("claims")

# %%
[(claim.id, claim.published, claim.measured, claim.grade) for claim in result.claims]
