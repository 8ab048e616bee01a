"""Engines: each takes a scenario and gives a recording."""
