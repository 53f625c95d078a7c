"""The page about the Python interface: its examples print what it says, and its notebook runs."""

import doctest

import pytest
from needs import needs_package
from paths import ROOT

PAGE, NOTEBOOK = (ROOT / "docs/guides" / name for name in ("python.md", "notebook.ipynb"))


def test_the_page_s_examples_print_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 5 and failed == 0


@pytest.mark.slow
def test_the_notebook_runs_and_draws(tmp_path):
    nbformat, nbclient = needs_package("nbformat"), needs_package("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    drawn = [output for output in shown if "<iframe srcdoc=" in output.get("data", {}).get("text/html", "")]
    assert len(drawn) == 3 and shown[-1]["data"]["text/plain"] == "True"
