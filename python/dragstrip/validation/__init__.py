"""How far the simulator is from a kernel: `dragstrip validate`.

Here live reading recordings of a real kernel, running the same scenario in the simulator, and measuring how
far apart the two are. What does not belong here: correcting anything. A constant that makes one file match
hides a mechanism that is missing.

kernel (a recording) → translate (our scenario) → traces (both sides in one form) → figures (and their errors)
→ targets (what is to be reached) → validate (a whole grid) → console, page, document; explain (one case in
words), bands (what continuous integration holds), acks (packet captures, ACK by ACK).
"""
