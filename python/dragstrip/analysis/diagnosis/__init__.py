"""Path diagnosis: findings, their certainty, and the changes that help.

Data pass through the modules once: files become `observations` (`sources`, `listing`), these become facts and
delays (`evidence`, `delays`), those findings with the causes that fit (`findings`, `loss_causes`, `losses`,
`limits`), findings become candidate changes (`advice`, as `commands`), which are tried on the simulator
(`trials`). `walk` is the way through all of them, `console` what is shown. Out of scope: reading a format
(`interop`), and running (`studies.execution`).
"""
