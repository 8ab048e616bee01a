"""Evidence for RFC 9743 (BCP 133): the rows of a passport by the clause that asks for them."""

from dragstrip.studies.evidence.document import of_passport as of_passport
