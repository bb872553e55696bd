"""A local server that shows run folders in a browser: what `python -m core.view` starts. See docs/view.md.

    places      the folders that may be looked into, what is in them, and no way out
    guard       who may ask: loopback, one token, our own host and origin; the headers of every reply
    cards       a run in one line of the list          library      runs that are open, until their files change
    task_rows   a task's trees and verdicts as rows     evidence     passages marked in the text of their page
    live        a run that is going on                  comparing    runs side by side
    difference  two answers to one task                 labelling    a blind sheet, one row at a time
    pages       HTML                                    api          JSON
    server      all of it on one port

Tables, charts and texts are those of report.html (core/report/html); the viewer adds what they leave out.
Files are read by one thread, request after request, so that what is kept of them is shared by no two.
"""
