"""Programs of one's own behind a described path, in real and in virtual time.

Scope: from options to a run of programs (`guest`, `real_time`), what they have in common (`path`), and both
as objects (`shell`), which the command line and Python share. Out of scope: the engines themselves.
"""
