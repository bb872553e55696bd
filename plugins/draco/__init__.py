"""DRACO (arXiv 2602.11685): deep-research reports graded against weighted rubrics of about 40 criteria."""
