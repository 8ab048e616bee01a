"""What a result says: what is compared with what, each contender's figures, and who is ahead by how much.

Here live the words and figures that the terminal and the report share. They are made of the result document
and the scenarios alone: no recording is read, nothing is measured, nothing is drawn.
"""
