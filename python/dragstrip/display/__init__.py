"""How results look wherever they are shown: numbers with units, colours, tables and progress in a terminal.

Scope: rules of presentation that terminal, report and page share. Out of scope: what is shown.
"""
