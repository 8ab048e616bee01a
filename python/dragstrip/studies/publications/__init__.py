"""All experiments of a publication, or of the catalogue, run and graded together.

Belongs here: `document` (one document of many experiments), `pages` (the catalogue's page and a page per
publication, written from that document), `distributions` (figures drawn from recordings) and `console`. Does
not belong here: anything that runs or measures.
"""
