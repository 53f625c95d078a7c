"""The keys of every answer: what the service makes, what reports and build systems read, what --json prints.

A leaf: the standard library only. Answers are plain values, as JSON has them, and bytes for files. Sizes are
in bytes, shapes are text such as 1x96x96x3, and None stands for what is not known or not there. Which
answer a kind of request has is said by what answers it. `benchmarks/answers_page.py` makes the reference page
from that.
"""

SCHEMA = 1  # the version of all answers; each has it under the key `schema`
