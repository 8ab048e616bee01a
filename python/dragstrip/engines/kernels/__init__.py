"""Kernels that an engine can boot: fetched from a distribution's archive, listed and chosen.

What belongs here: the kernels of the cache (`kernel`) and packages of Debian's archive (`archive`). What
does not: booting one, which is the engine's work.
"""
