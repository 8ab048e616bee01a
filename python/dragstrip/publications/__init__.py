"""All experiments of a publication, or of the catalogue, run and graded together.

What lives here: `document` (one document of many experiments), `pages` (the catalogue's page and a page per
publication, written from that document), `distributions` (what they draw of recordings) and `console`.
What must not: anything that runs or measures.
"""
