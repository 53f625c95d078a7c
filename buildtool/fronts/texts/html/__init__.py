"""The page of `buildtool report`: one HTML file with drawings of the plan and its data.

`page.page` makes the file from an answer. Python computes the layout of the drawings (arena.py, front.py,
network.py) and the templates write them, so that the page can be read without JavaScript. templates/report.js
adds the interaction: tips, the steps of streamed regions, the points of the Pareto front.
"""
