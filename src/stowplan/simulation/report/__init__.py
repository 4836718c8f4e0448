"""The report of runs: one page of HTML that needs no server and asks for nothing.

    engine ──► ReportRecorder ─┐
    figures, series ───────────┴─► ReportRun, one for each run ──► page.html(runs) ──► text

A `ReportRun` is plain data: runs of several processes can be put on one page. Curves and tables are made here, so that
they are there without JavaScript and in print; only the heat map of the nodes is drawn by a script in the page. The
same runs give the same text.
"""
