"""The page of `buildtool report`: one HTML file with the plan drawn, and its data inside.

`page.page` makes it from an answer. What is drawn is laid out in Python (arena.py, front.py, network.py) and
written by the templates, so that the page can be read without JavaScript; templates/report.js adds what
answers to a hand: tips, the steps of streamed regions, the front's points.
"""
