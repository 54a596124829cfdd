"""The workbench in the browser, started by `karat view`: runs of a folder, one run, runs side by side, one query.

Pages are HTML from the components of `report.html`, rendered in worker processes. Every state of a screen is in its
address; small scripts only save reloading.
"""
