"""WANDR (arXiv 2608.14747): trees of evidence-backed records, graded by precision and recall of entities."""
