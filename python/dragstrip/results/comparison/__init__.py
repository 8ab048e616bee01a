"""Standings: what is compared with what, each contender's figures, and who is ahead by how much.

Belongs here: the words and figures that the terminal and the report share, made from the result document and
the scenarios alone. Does not belong here: reading recordings, measuring and drawing.
"""
