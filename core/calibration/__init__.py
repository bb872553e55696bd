"""A judge against people, and against itself on other pages: what `python -m core.calibrate` does.

labels     people's labels, out of CSV or JSON Lines          cells    cells that no spreadsheet runs
judged     a run's verdicts by unit                           matching labels and verdicts, side by side
fold       what the benchmark's fold tells of a unit: groups, points
rates      accuracy, κ, sensitivity, specificity, intervals   correct  shares and scores without the judge's errors
build      all of it for some labels and runs                 results  the content of calibration.json
sample     a stratified draw with known chances               sheet    the blind sheet of it
material   what the judge was shown, made again from the folder
drift      the same answers on other pages                    pages_seen  what the pages were
render     for people
"""
