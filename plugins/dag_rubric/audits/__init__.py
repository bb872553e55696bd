"""Audits of DAG rubrics and of runs on them: the answers to what the benchmark is criticised for."""
