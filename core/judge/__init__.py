"""Judges: asking a model, reading a file of verdicts, applying rules; and the desk where graders ask."""
