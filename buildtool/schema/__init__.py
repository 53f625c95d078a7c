"""The types of all answers: what the service returns, reports and build systems read, and --json prints.

This package imports the standard library and `buildtool.base` only. Answers are plain JSON values, and bytes
for files. Sizes are in bytes, shapes are text such as 1x96x96x3, and None means unknown or absent. The
handler of a request names the type of its answer. `benchmarks/answers_page.py` writes the reference page from
these types.
"""

SCHEMA = 1  # the version of all answers; each has it under the key `schema`
