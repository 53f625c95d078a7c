"""Arena problems from files: the format, hostile tables, the command, and the hard benchmark problems."""

from pathlib import Path

import pytest
from needs import needs_shared

from buildtool.api.answers.arena import COMMON_NODES, common_budget
from buildtool.base.errors import ModelError
from buildtool.fronts.cli import main as cli
from buildtool.plan.place import arena
from buildtool.plan.place.arena import Item, Problem
from buildtool.plan.place.csvfile import MOST_BYTES, read_problem, write_solution
from buildtool.plan.place.instance import MOST_ITEMS
from buildtool.plan.place.solver import Status, decide, solve

CAPACITY = 1_048_576
HEADER = b"id,lower,upper,size\n"


def test_reads_a_table_with_columns_in_any_order() -> None:
    data = b"\xef\xbb\xbfsize,ID, lower ,upper,alignment,offset\r\n4,b1,-3,3,4,\r\n\r\n2,b 2,0,9,2,6\r\n"
    table = read_problem(data)
    assert table.names == ("b1", "b 2")
    assert table.problem == Problem((Item(-3, 3, 4, 4), Item(0, 9, 2, 2, 6)))


def test_a_solution_reads_back_as_the_problem_with_every_offset() -> None:
    table = read_problem(HEADER + b'"a,b",0,3,4\nc,2,5,4\n')
    solution = solve(table.problem, 100).solution
    assert solution is not None
    data = write_solution(table, solution.offsets)
    assert data == b'id,lower,upper,size,offset\n"a,b",0,3,4,0\nc,2,5,4,4\n'
    again = read_problem(data)
    assert tuple(item.offset for item in again.problem.items) == solution.offsets
    assert write_solution(again, solution.offsets) == data
    aligned = read_problem(b"id,lower,upper,size,alignment\na,0,3,4,8\n")
    assert write_solution(aligned, [16]) == b"id,lower,upper,size,alignment,offset\na,0,3,4,8,16\n"


@pytest.mark.parametrize(
    ("data", "line", "text"),
    [
        (b"", 1, "no column 'id'"),
        (b"a,b\n", 1, "no column 'id'"),
        (b"id,lower,upper,size,gaps\n", 1, "the column 'gaps' is not known"),
        (b"id,lower,upper,size,size\n", 1, "the column 'size' occurs twice"),
        (HEADER + b"a,0,1,5\nb,0,1\n", 3, "the line has 3 values, the table 4 columns"),
        (HEADER + b"a,0,1,5\na,0,1,5\n", 3, "the id 'a' occurs twice"),
        (HEADER + b"a,1,1,5\n", 2, "the buffer ends at 1, but begins only at 1"),
        (HEADER + b"a,0,1,-5\n", 2, "a size of -5"),
        (HEADER + b"a,0,1,5.0\n", 2, "size is '5.0'"),
        (HEADER + b"a,0,1," + b"9" * 16 + b"\n", 2, "size is"),
        (HEADER + "a,0,1,٣\n".encode(), 2, "size is"),
        (HEADER + b"a,,1,1\n", 2, "lower is ''"),
        (b"id,lower,upper,size,alignment\na,0,1,5,0\n", 2, "an alignment of 0"),
        (b"id,lower,upper,size,alignment,offset\na,0,1,5,4,6\n", 2, "the offset 6 is"),
        (b"id,lower,upper,size,offset\na,0,1,5,-4\n", 2, "the offset -4 is"),
        (HEADER + b'"a,0,1,5\n', 2, "not a table"),
        (HEADER + b"a,0,1,5\nb\xff,0,1,5\n", 3, "not a text file"),
        (HEADER + b"".join(b"%d,0,1,5\n" % i for i in range(MOST_ITEMS + 1)), MOST_ITEMS + 2, "more than"),
    ],
)
def test_a_malformed_table_is_refused_with_path_and_line(data: bytes, line: int, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_problem(data, path="x.csv")
    assert (caught.value.path, caught.value.line) == ("x.csv", line)
    assert text in caught.value.text


def test_a_huge_file_is_refused_unread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match="more than"):
        read_problem(b"\n" * (MOST_BYTES + 1))
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert cli.run(["arena", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: error: the file has more than")
    assert cli.run(["arena", "/dev/zero"]) == 2
    assert capsys.readouterr().err.startswith("/dev/zero: error: it is not a regular file")


def test_every_prefix_of_a_table_is_read_or_refused() -> None:
    data = b'id,lower,upper,size,alignment,offset\n"a",0,3,4,4,8\nb,-1,2,5,1,\n'
    for end in range(len(data)):
        try:
            assert len(read_problem(data[:end]).names) <= 2
        except ModelError as error:
            assert error.line > 0


def write(folder: Path, data: bytes) -> str:
    path = folder / "p.csv"
    path.write_bytes(data)
    return str(path)


EASY = b"id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def test_the_command_tells_height_bound_and_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path, EASY), tmp_path / "new" / "solved.csv"
    assert cli.run(["arena", path, "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "p.csv: optimal: no placement is lower"
    assert lines[1:3] == ["height    12 bytes", "bound     12 bytes"]
    solved = read_problem(out.read_bytes()).problem
    offsets = [item.offset for item in solved.items if item.offset is not None]
    arena.validate(read_problem(EASY).problem, offsets)
    assert arena.height(solved, offsets) == 12


def test_a_capacity_that_is_too_small_exits_1_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "solved.csv"
    assert cli.run(["arena", write(tmp_path, EASY), "--capacity", "11", "--out", str(out)]) == 1
    assert "infeasible: it is proven that nothing fits" in capsys.readouterr().out
    assert not out.exists()


def test_mistakes_name_the_file_and_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, HEADER + b"a,0,1,x\n")
    assert cli.run(["arena", path]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:2:7: error: size is 'x'")
    assert cli.run(["arena", str(tmp_path / "none.csv")]) == 2
    assert "cannot read the problem: there is no such file" in capsys.readouterr().err
    assert cli.run(["arena", path, "--budget", "0"]) == 2
    capsys.readouterr()
    huge = write(tmp_path, HEADER + b"a,0,1,999999999999999\nb,0,1,999999999999998\n")
    assert cli.run(["arena", huge]) == 1
    assert capsys.readouterr().err.startswith(f"{huge}: error: sizes and offsets add up to")


def problem_file(name: str) -> Problem:
    path = needs_shared(f"minimalloc/{name}")
    return read_problem(path.read_bytes(), path=str(path)).problem


@pytest.mark.parametrize("name", "ABCDEF")
def test_hard_problems_are_solved_down_to_their_bound(name: str) -> None:
    problem = problem_file(f"{name}.{CAPACITY}.csv")
    if name == "D":  # no known placement reaches its bound
        result = decide(problem, CAPACITY, COMMON_NODES // 10)
    else:
        result = solve(problem, COMMON_NODES // 10)
        assert result.status is Status.OPTIMAL
    assert result.solution is not None
    assert result.solution.height <= (CAPACITY if name == "D" else result.bound)
    arena.validate(problem, result.solution.offsets)


@pytest.mark.parametrize(
    ("items", "nodes"), [(0, 5_000_000), (256, 5_000_000), (512, 2_500_000), (1024, 1_250_000)]
)
def test_the_common_budget_shrinks_with_the_number_of_items_not_with_its_square(
    items: int, nodes: int
) -> None:
    assert common_budget(items) == nodes
