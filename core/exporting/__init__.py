"""Runs as tables, for other programs and for papers. Asks nobody, changes nothing in a run.

    table      a table: typed columns, and rows that can be read again and again
    spread     objects of unknown keys as columns
    tables     what a run folder has, as tables
    writers    Parquet and CSV
    layout     which numbers a benchmark's tables for people have
    shown      the numbers of runs laid out so
    latex, markdown    these tables as text

Everything is a function of the files read: the same runs give the same bytes, wherever they lie.
"""
