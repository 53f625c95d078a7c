"""Shell sessions as text: commands, their expected output, and their exit status.

    $ buildtool plan ds_cnn --board hots
    error: unknown board 'hots' [USAGE]
      hint: <any>
    [exit 2]

`<n>` stands for a number (with separators or decimals), `<any>` for any text within a line, a line `...` for
any lines.
"""

import re
from dataclasses import dataclass, field

PLACEHOLDERS = {"<n>": r"[-\d.,]+", "<any>": r".*"}


@dataclass
class Command:
    text: str
    expected: list[str] = field(default_factory=list)
    status: int = 0


def parse(text: str) -> list[Command]:
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif match := re.fullmatch(r"\[exit (\d+)\]", line):
            commands[-1].status = int(match.group(1))
        elif commands and not line.startswith("# "):
            commands[-1].expected.append(line)
    for command in commands:
        while command.expected and not command.expected[-1]:
            command.expected.pop()  # blank lines between commands
    return commands


def pattern(lines: list[str]) -> str:
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        words = re.split("|".join(PLACEHOLDERS), line)
        placeholders = re.findall("|".join(PLACEHOLDERS), line)
        regex = re.escape(words[0])
        for placeholder, word in zip(placeholders, words[1:], strict=True):
            regex += PLACEHOLDERS[placeholder] + re.escape(word)
        # Columns are as wide as their widest number.
        parts.append(re.sub(r"(?:\\ ){2,}", r" +", regex) + "\n" if placeholders else regex + "\n")
    return "".join(parts)
