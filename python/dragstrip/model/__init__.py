"""The data of a run: its scenario and its recording.

Scope: tables and folders of recordings, facts of a scenario's paths and disciplines. Out of scope:
experiments, which become scenarios (`experiment`), and engines, which make recordings (`engines`).
"""
