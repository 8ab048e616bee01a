"""Race TCP congestion controls over a described path."""
