"""The keys of every answer: what the service makes, what reports and build systems read, what --json prints.

A leaf: the standard library only. Answers are plain values, as JSON has them, and bytes for files. Sizes are
in bytes, shapes are text such as 1x96x96x3, and None stands for what is not known or not there. Which
answer a kind of request has is said by what answers it; the reference page is made from that by page.py.
"""

SCHEMA = 1  # the version of all answers; each has it under the key `schema`
