"""Images that come row by row on boards: read by several operators, behind reshapes, beside other inputs."""

import pytest
from boardruns import file_of, validated
from deliverednets import network

LEAST = {"image": "stream", "objective": "ram"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board", "options"),
    [
        ("joined", "host", LEAST),
        ("late", "host", {"image": "stream"}),
        ("paired", "host", LEAST),
        ("residual", "cortex-m4", LEAST),
        ("temporal", "cortex-m4", LEAST),
    ],
)
def test_every_tensor_equals_litert(name, board, options, tmp_path):
    validated(file_of(network(name), tmp_path), board, options)


@pytest.mark.slow
def test_rows_and_another_input_come_over_a_wire(tmp_path):
    answer = validated(file_of(network("beside"), tmp_path), "cortex-m4", LEAST, wire="serial")
    assert answer["level_text"] == "emulated board over its UART"
