"""DAG rubric: a task is a graph of research steps, each with checkpoints; steps that carry more weigh more."""
