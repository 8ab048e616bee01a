"""All experiments of a publication, or of the catalogue, run and graded together.

Scope: `document` (one document of many experiments) and `console` (its table). Out of scope: anything that
runs or measures, and the catalogue's pages (tools/catalogue.py in the repository).
"""
