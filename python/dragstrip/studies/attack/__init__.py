"""The search for conditions under which a congestion control fails (docs/how-to/attack.md).

Belongs here: what an attack may consist of (`elements`), the network it acts on (`scene`), what counts as
failure (`goals`), the search (`search`), what is kept of it (`finds`, `kept`), and text (`console`). Does not
belong here: the simulator, and how a figure is measured.
"""
