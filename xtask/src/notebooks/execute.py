"""Runs a notebook top to bottom: execute.py NOTEBOOK FOLDER RESULT

The kernel works in FOLDER. The notebook with its outputs is written to RESULT, also where a cell
failed: what it says is an output as well. The time of each cell goes to the standard error.
"""

import sys
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

source, folder, result = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
started = {}


def begun(cell, cell_index):
    started[cell_index] = time.monotonic()


def done(cell, cell_index, **_):
    if cell_index in started:
        seconds = time.monotonic() - started.pop(cell_index)
        print(f"  cell {cell_index}: {seconds:.1f} s", file=sys.stderr, flush=True)


client = NotebookClient(
    notebook,
    timeout=None,
    startup_timeout=120,
    kernel_name="rust",
    resources={"metadata": {"path": folder}},
    on_cell_execute=begun,
    on_cell_executed=done,
    record_timing=False,
)
for cell in notebook.cells:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
try:
    client.execute()
except CellExecutionError:
    pass  # The outputs have it.
except DeadKernelError:
    print("the kernel died", file=sys.stderr)
except RuntimeError as error:
    sys.exit(f"the kernel does not start: {error}")
nbformat.write(notebook, result)
