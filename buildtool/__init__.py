"""buildtool: makes trained int8 neural networks fit and run on microcontrollers.

    network = buildtool.open("wake.tflite")
    plan = network.plan(board="cortex-m4", ram="64K")

The names of this module are imported when they are used. `__init__.pyi` has their types.
"""

from importlib import import_module as _import

__version__ = "0.1.0"
DISTRIBUTION = "buildtool-mcu"  # on PyPI, `buildtool` is somebody else's

_HOMES = {
    "fronts.python.lists": ("open", "boards", "networks", "operators", "sizes", "arena"),
    "fronts.python.network": ("Network",),
    "fronts.sweep.calling": ("sweep", "Sweep"),
    "fronts.python.answers": (
        *("Analysis", "Answer", "Arena", "Boards", "Build", "Bundle", "DatasetValidation", "Description"),
        *(
            "Front",
            "NetworkMemory",
            "Networks",
            "Operators",
            "Plan",
            "Profile",
            "Quantized",
            "Report",
            "Sizes",
        ),
        *("Sources", "Trace", "Validation"),
    ),
    "base.errors": (
        *("BuildtoolError", "InternalError", "MachineError", "ModelError", "PlanError", "TargetError"),
        *("ToolError", "UnsupportedError", "UsageError"),
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import(f"buildtool.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(["DISTRIBUTION", "__version__", *_HOME_OF])
