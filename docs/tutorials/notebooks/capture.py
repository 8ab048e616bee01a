# %% [markdown]
# # A capture diagnosed and answered
#
# A sender's capture says what limits a transfer, which congestion control sent it, and what another would have done in its
# place. Here the capture is of a simulated upload; `tcpdump -s 128 -w sender.pcap` on a server gives one of your own.

# %%
import shutil
import tempfile
from pathlib import Path

import dragstrip

folder = Path(tempfile.mkdtemp()) / "race"
result = dragstrip.race(
    "cubic", rate="8mbit", rtt="30ms", queue="pfifo limit 100", duration="15s", out=folder, capture=["s1"]
)
sender = shutil.copy(result.captures[0], "sender.pcapng")
print(dragstrip.inspect(sender))

# %%
print(dragstrip.diagnose(sender))

# %%
print(dragstrip.identify(sender))

# %%
answer = dragstrip.whatif(sender, "bbr", queue="fq_codel")
print(answer)
