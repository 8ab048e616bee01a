"""What is wrong on a path, how sure that is, and which changes help.

Data pass through the modules once: files become facts (`sources`, `listing`, `losses`), facts become evidence
(`evidence`), evidence becomes findings (`findings`), findings become candidate changes (`advice`), which are
tried on the simulator (`trials`). `walk` is the way through all of them, `document` and `console` what is
shown. Does not belong here: reading a format, which `formats` does, and running, which `execution` does.
"""
