"""The documents' tables, figures and theorems, made again: the document's numbers beside ours, and a verdict on each.

    tacit reproduce pathak-figure-2

`result` says what a reproduction is, `run` computes and keeps its cells, `page` writes it down, and `registry` knows
all of them. Each document has a file or a folder of its own.
"""
