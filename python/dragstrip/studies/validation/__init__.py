"""Validation: the distance of the simulator from a kernel, for `dragstrip validate`.

Belongs here: reading recordings of a real kernel, running the same scenario in the simulator, and measuring
the difference. Does not belong here: corrections. A constant that makes one recording match hides a missing
mechanism.

kernel (a recording) → translate (our scenario) → traces (both sides in one form) → figures (and their errors)
→ targets (what must be reached) → validate (a whole grid) → console, page, document; explain (one case in
words), bands (limits for continuous integration), acks (packet captures, ACK by ACK).
"""
