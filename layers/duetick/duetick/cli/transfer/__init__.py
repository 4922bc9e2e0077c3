"""`duetick import` and `duetick export`: schedules of other schedulers, and of files.

    a file, a dump, a database ─▶ items ─▶ rules ─▶ plan ─▶ batches of the API
                         (a reader for each format)

A reader turns a source into items: one for each line, job or schedule of it. An item that can be a
schedule here has a timing; any other has a reason. The rules name the flow and the action that a
schedule runs. The plan compares the result with the schedules that are here.
"""
