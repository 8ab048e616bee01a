"""Appearance of results wherever they are shown: numbers, colours, tables, pages, progress in a terminal.

Scope: rules of presentation that terminal, report and page share. Out of scope: what is shown.
"""
