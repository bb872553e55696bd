"""A toy benchmark and a toy system for Leadline."""
