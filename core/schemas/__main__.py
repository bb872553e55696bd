"""`python -m core.schemas`: write the schema files anew, after a change of the models."""

from pathlib import Path

from core.schemas import write

if __name__ == "__main__":
    write(Path(__file__).parent)
